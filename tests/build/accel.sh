#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: KVM is used only when a guest reaches userland under it in time
# tags: quick build
# tier: check
# timeout: 60

. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/build/lib.sh"

need_file "$BUILD/qemu/qemu-system-x86_64" "$BUILD/guest/7.2/base.cpio"
mkdir verdicts
stand_in() { # NAME BODY: an emulator that counts its runs
	printf '#!/bin/sh\necho run >>"%s/%s.runs"\n%s\n' "$OUT" "$1" "$2" >"$1"
	chmod 755 "$1"
}
accel() { # EMULATOR
	env -u PEERLANE_ACCEL PEERLANE_KVM_DEVICE=/dev/null PEERLANE_PROBE_QEMU="$OUT/$1" PEERLANE_VERDICTS="$OUT/verdicts" \
		PEERLANE_KVM_TIMEOUT=2 "$TOP/images/build/accel" 2>>"$1.err"
}
tcg=tcg,thread=multi

stand_in boots 'exit 11'
check_eq "a guest that reaches userland: kvm" kvm "$(accel boots)"
stand_in hangs 'trap "" TERM; while :; do sleep 1; done'
start=$(stopwatch)
check_eq "a guest that hangs: tcg" $tcg "$(accel hangs)"
within "the probe gives up in time" 8 "$start"
check "and says why" grep -q "no userland within 2 s" hangs.err
check_eq "the verdict is remembered" $tcg "$(accel hangs)"
check_eq "without another probe" 1 "$(wc -l <hangs.runs)"
stand_in crashes 'echo "an assertion failed" >&2; exit 134'
check_eq "an emulator that crashes: tcg" $tcg "$(accel crashes)"
check "and says why" grep -q "an assertion failed" crashes.err
stand_in stops 'exit 1'
check_eq "a machine that stops without the case's status: tcg" $tcg "$(accel stops)"
check_eq "no device: tcg, without a probe" $tcg \
	"$(env -u PEERLANE_ACCEL PEERLANE_KVM_DEVICE="$OUT/nowhere" PEERLANE_VERDICTS="$OUT/verdicts" "$TOP/images/build/accel")"
check_eq "PEERLANE_ACCEL=tcg decides" $tcg "$(PEERLANE_ACCEL=tcg "$TOP/images/build/accel")"
check_eq "PEERLANE_ACCEL=kvm decides" kvm "$(PEERLANE_ACCEL=kvm "$TOP/images/build/accel")"
finish
