# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# For cases that run test programs of the CUDA libraries in guests; sourced after
# scenarios/lib/case.sh.
. "$TOP/tests/lib/userlib.sh"
. "$TOP/scenarios/lib/machine/vm.sh"

# boot NAME TOPOLOGY KVER SECONDS: a guest that runs the script on standard input;
# what it prints is this case's
boot() {
	mkdir -p "$OUT/$1.case"
	cat >"$OUT/$1.case/run"
	chmod +x "$OUT/$1.case/run"
	echo peerlane_gpu >"$OUT/$1.case/modules"
	vm_run "$1" "$2" "$3" "$OUT/$1.case" "$4"
	ended "$1" $? "$OUT/$1/result.log"
}
