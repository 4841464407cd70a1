# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# The guest of one act (ways.sh): a ConnectX that talks to itself, from GPU memory to GPU memory; labels and facts are named
# by the act.  Where the kernel refuses the way, the library stages.
#
# shellcheck source=scenarios/lib/guest/guest.sh
. /case/lib/guest.sh
# shellcheck source=/dev/null
. /case/act

# perf NAME STATUS ARGUMENTS…: counted
perf() {
	perf_name=$1
	perf_want=$2
	shift 2
	counted "$perf_name" timeout 60 peerlane perf --loopback --json --op write --test stream \
		--sizes 64K --seconds 0.2 "$@" >/tmp/perf.json 2>/tmp/perf.err
	sed 's/^/# /' /tmp/perf.err
	check_eq "$perf_name: how peerlane perf ends" "$perf_want" "$counted_status"
	text "$perf_name.said" "$(cat /tmp/perf.err)"
	[ "$counted_status" -ne 0 ] || fact "$perf_name.perf" "$(cat /tmp/perf.json)"
}

must_appear /sys/class/infiniband/mlx5_0
must ip link set lo up
case $ACT in
*_untrusted)
	perf "$ACT" 4 --memory direct
	perf "${ACT}_staged" 0 --memory staged
	;;
*) perf "$ACT" 0 --memory direct ;;
esac
fact "$ACT.topo" "$(peerlane topo --json)"
peerlane doctor --try --json >/tmp/doctor.json
fact "$ACT.doctor" "$(cat /tmp/doctor.json)"
dmesg | grep -E 'peer-to-peer|ACS redirect' >/tmp/said
text "$ACT.kernel" "$(cat /tmp/said)"
fact "$ACT.iommu_faults" "$(dmesg | grep -c 'DMAR:.*fault')"
finish
