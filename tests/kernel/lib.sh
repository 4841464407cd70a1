# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# What the driver's cases share: one boot of one guest case.

. "$TOP/scenarios/lib/case.sh"

# driver_boot KVER TOPOLOGY CASE SECONDS [QEMU-ARGS…]: boots, and takes over
# the results.  $DRIVER_FILES go to the guest, too.  $driver_status is the guest's.
driver_boot() {
	. "$TOP/scenarios/lib/machine/vm.sh"
	need_file "$BUILD/kernel/$1/peerlane_gpu.ko" \
		"$BUILD/kernel/$1/test/pln_basic" "$BUILD/guest/$1/vmlinux"
	truncate -s 64M "$OUT/disk0"
	vm_image disk0 "$OUT/disk0"
	driver_kver=$1
	driver_topology=$TOP/tests/kernel/$2.topo
	driver_seconds=$4
	cp -R "$TOP/tests/kernel/cases/$3" "$OUT/case"
	# shellcheck disable=SC2086 # a list
	cp "$TOP/tests/kernel/cases/guest.sh" ${DRIVER_FILES-} "$OUT/case/"
	echo "TIER=${TIER:-check}" >"$OUT/case/env"
	shift 4
	vm_run guest "$driver_topology" "$driver_kver" "$OUT/case" \
		"$driver_seconds" "$@"
	driver_status=$?
	ktap_from "$OUT/guest/result.log"
}

# driver_guest …: the same, and it must end well
driver_guest() {
	driver_boot "$@"
	check_eq "the guest ended well, with nothing bad on its console" 0 \
		"$driver_status"
}

need_debug_kernel() {
	[ -e "$BUILD/guest/7.2-debug/headers" ] ||
		skip "no debug kernel: run \`make debug-kernel\` (half an hour, once)"
}

# debug_guest TOPOLOGY CASE SECONDS [QEMU-ARGS…]: under the debug kernel, which
# says what is wrong on the console, and needs room for that
debug_guest() {
	need_debug_kernel
	. "$TOP/scenarios/lib/machine/vm.sh"
	vm_allow 'rcu: .RCU callback double-/use-after-free debug is enabled' \
		'the kernel tells of its checks'
	driver_guest 7.2-debug "$@" -m 2G
}
