#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peerlane doctor's section on RDMA: devices, dma-bufs, peer memory, what a registration of GPU memory does and why
# tags: doctor rdma
# tier: check
# timeout: 60

. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/doctor/lib.sh"

# section DESC STATUS CONDITION: of the record made of healthy.desc and the patch on stdin
section() {
	cat >"patch"
	record "$base" patch >rec
	"$tool" doctor --from rec --json >out 2>err
	check_eq "$1: status" "$2" "$?" || sed 's/^/# /' err
	json "$1" ".sections.rdma as \$r | [.findings[].id] as \$ids | $3"
}

section "in order: the device, by its driver, and what was tried" 0 '
	$r.mlx5_0 == "mlx5_core, takes dma-bufs" and
	$r["mlx5_0, memory of GPU0"] == "dmabuf ok" and
	$r.peer_memory == "not in ib_core" and $ids == []' </dev/null

section "by its pointer: what was tried before, and why not that" 0 '
	$r["mlx5_0, memory of GPU0"] == "dmabuf EOPNOTSUPP: mlx5_0 cannot take dma-bufs; plain ok" and
	$ids == []' <<'END'
F /peerlane/trial/mlx5_0/0000:03:00.0#dmabuf EOPNOTSUPP: mlx5_0 cannot take dma-bufs
F /peerlane/trial/mlx5_0/0000:03:00.0#plain ok
END

section "staged: both refusals, and a finding" 1 '
	$r["mlx5_0, memory of GPU0"] ==
	"dmabuf EOPNOTSUPP: mlx5_0 cannot take dma-bufs; plain EFAULT: no client; staged ok" and
	$ids == ["rdma-gpu-staged"]' <<'END'
F /peerlane/trial/mlx5_0/0000:03:00.0#dmabuf EOPNOTSUPP: mlx5_0 cannot take dma-bufs
END

section "nothing at all: an error" 2 '
	($r["mlx5_0, memory of GPU0"] | endswith("; staged ENOMEM: too little may be locked")) and
	$ids == ["rdma-gpu-nothing"]' <<'END'
F /peerlane/trial/mlx5_0/0000:03:00.0#dmabuf EOPNOTSUPP: mlx5_0 cannot take dma-bufs
F /peerlane/trial/mlx5_0/0000:03:00.0#staged ENOMEM: too little may be locked
END

section "peer memory in the core, and its client" 0 '
	$r.peer_memory == "in ib_core, client nvidia_peermem" and $ids == []' <<'END'
F /proc/kallsyms#ib_register_peer_memory_client T
D /sys/module/nvidia_peermem version
END

section "a client that nothing asks" 1 '
	$r.peer_memory == "not in ib_core, client nvidia_peermem" and $ids == ["rdma-idle-client"]' <<'END'
D /sys/module/nvidia_peermem version
END

section "a device without a driver is software" 0 '
	$r.mlx5_0 == "software, takes no dma-bufs" and ($ids | index("rdma-soft"))' <<'END'
E /sys/class/infiniband/mlx5_0/device/driver ENOENT
F /peerlane/trial/mlx5_0#dmabuf EOPNOTSUPP
END

section "no device" 0 '$r == {devices: "none"}' <<'END'
D /sys/class/infiniband
END

# untried VERSION DRIVER: what is thought of it by its name
untried() {
	cat >"patch" <<END
F /proc/sys/kernel/osrelease $1.0-1-server\n
L /sys/class/infiniband/mlx5_0/device/driver /sys/bus/pci/drivers/$2
- /peerlane/trial/mlx5_0#dmabuf
END
	record "$base" patch >rec
	"$tool" doctor --from rec --json 2>err | jq -r '.sections.rdma.mlx5_0'
}
# Since when reg_user_mr_dmabuf is in Linux's drivers
while read -r driver before since; do
	check_eq "$driver of $before, not tried" "$driver, takes no dma-bufs (not tried)" "$(untried "$before" "$driver")"
	check_eq "$driver of $since, not tried" "$driver, takes dma-bufs (not tried)" "$(untried "$since" "$driver")"
done <<'END'
mlx5_core 5.11 5.12
efa 5.16 5.17
irdma 6.1 6.2
ice 6.1 6.2
bnxt_en 6.5 6.6
bnxt_re 6.5 6.6
END
for driver in hns3 mlx4_core qede rdma_rxe; do
	check_eq "$driver takes none" "$driver, takes no dma-bufs (not tried)" "$(untried 7.3 "$driver")"
done
finish
