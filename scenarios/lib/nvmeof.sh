# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2154 # from scenario.sh
#
# What cx-nvmeof and cx-nvmeof-staged share on the host's side: host b serves its drive by NVMe over Fabrics.
#
# shellcheck source=scenarios/lib/machine/hosts.sh
. "$TOP/scenarios/lib/machine/hosts.sh"

nvmeof() {
	sc_devices | grep -q '^[^ ]* cx .*link=ethernet' || skip "$SC_NAME needs a ConnectX with Ethernet"
	nvmeof_bytes=$((16 * 1048576 + 4096))
	hosts_case
	echo nvmeof >>"$OUT/case/extras"
	echo "BYTES=$nvmeof_bytes" >"$OUT/case/env"
	sc_modules virtio_net mlx5_ib ib_uverbs nvme nvmet nvmet_rdma nvme_rdma ext4 peerlane_gpu
	hosts_boot 550 2 "$SC_TOPOLOGY" "$TOP/scenarios/lib/nvmeof.topo"
	sc_add --argjson bytes "$nvmeof_bytes" '{$bytes}'
}
