# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# What the driver's cases share: one boot of one guest script.

. "$TOP/scenarios/lib/case.sh"

# driver_boot KVER MACHINE SCRIPT SECONDS [QEMU-ARGS…]: boots, and takes over
# the results.  SCRIPT may be several, a,b,c: they share the guest.  $DRIVER_FILES go to the guest, too; the drive has
# $DRIVER_DISK bytes, the guest what $DRIVER_EXTRAS names.  $driver_status is the guest's.
driver_boot() {
	. "$TOP/scenarios/lib/machine/vm.sh"
	. "$TOP/scenarios/lib/machine/hotplug.sh"
	need_file "$BUILD/kernel/$1/peerlane_gpu.ko" \
		"$BUILD/kernel/$1/test/pln_basic" "$BUILD/guest/$1/vmlinux"
	truncate -s "${DRIVER_DISK:-64M}" "$OUT/disk0.img"
	vm_image disk0 "$OUT/disk0.img"
	driver_kver=$1
	# MACHINE may have overrides: driver,gpu0.coherent=off
	driver_topology=$TOP/tests/kernel/${2%%,*}.topo${2#"${2%%,*}"}
	driver_seconds=$4
	mkdir "$OUT/case"
	driver_scripts=$(echo "$3" | tr , ' ')
	case $3 in
	*,*) cp "$TOP/tests/kernel/guest/several" "$OUT/case/run" ;;
	*) cp "$TOP/tests/kernel/guest/$3" "$OUT/case/run" ;;
	esac
	# shellcheck disable=SC2086 # lists
	(cd "$TOP/tests/kernel/guest" && cp lib.sh strict.sh ${DRIVER_FILES-} $driver_scripts "$OUT/case/")
	[ -z "${DRIVER_EXTRAS-}" ] || echo "$DRIVER_EXTRAS" >"$OUT/case/extras"
	echo "TIER=${TIER:-check} SCRIPTS='$driver_scripts'" >"$OUT/case/env"
	shift 4
	vm_run guest "$driver_topology" "$driver_kver" "$OUT/case" \
		"$driver_seconds" "$@"
	driver_status=$?
	ktap_from "$OUT/guest/result.log"
}

# The host's side of pln_fault: the port above the device reports a fatal error of its link
host_link_error() {
	error_port=$(vm_plug_args "$1" "$2" | sed -n 's/.*,bus=\([^,]*\).*/\1/p')
	[ -n "$error_port" ] || { echo "no device $2"; return 1; }
	error_reply=$(vm_command "$1" human-monitor-command --arg command-line "pcie_aer_inject_error $error_port DLP") || return 1
	case $error_reply in
	*OK*) echo ok ;;
	*) echo "error $error_reply" ;;
	esac
}

# The host's side of pln_hotplug
host_pull() { vm_pull "$1" "$2" && echo ok; }
host_unplug() { vm_unplug "$1" "$2" && echo ok; }
host_plug() { vm_plug "$1" "$2" && echo ok; }

# driver_guest …: the same, and it must end well
driver_guest() {
	driver_boot "$@"
	check_eq "the guest ended well, with nothing bad on its console" 0 \
		"$driver_status"
}

# debug_guest KVER MACHINE SCRIPT SECONDS [QEMU-ARGS…]: under a debug kernel, which
# reports on the console what is wrong
debug_guest() {
	need_file "$BUILD/guest/$1/headers"
	driver_guest "$@"
}
