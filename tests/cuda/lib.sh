# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# For cases that run test programs of the CUDA libraries in guests; sourced after
# scenarios/lib/case.sh.
. "$TOP/tests/lib/userlib.sh"
. "$TOP/scenarios/lib/machine/vm.sh"

# boot NAME TOPOLOGY KVER SECONDS SCRIPT [LINE…]: a guest that runs the script; the lines go to /case/env; what the guest prints is this
# case's
boot() {
	mkdir -p "$OUT/$1.case"
	cp "$5" "$OUT/$1.case/run"
	chmod +x "$OUT/$1.case/run"
	(shift 5 && printf '%s\n' "$@") >"$OUT/$1.case/env"
	echo peerlane_gpu >"$OUT/$1.case/modules"
	vm_run "$1" "$2" "$3" "$OUT/$1.case" "$4"
	ended "$1" $? "$OUT/$1/result.log"
}

# conform_golden PART: what two H100s answered (driver 580.159.04), but for what libcuda-peerlane(7) says differs: the handle of a
# destroyed context, and that the end of a context waits for work of other GPUs
conform_golden() {
	sed -E 's/^((en|dis)able for what is destroyed +)709$/\1201/
		s/^((destroy the second(, the first.s stream is held)?|the (first|second) may: destroy the second) +)waits 0$/\1returns 0/' "$TOP/userlib/cuda/test/conform_$1.golden"
}
