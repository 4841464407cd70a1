#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: QEMU under the thread sanitizer: cases in which several threads are at work find no data race in the models
# tags: qtest switch nvme
# tier: nightly
# timeout: 1800
TOP=${TOP:-$(CDPATH='' cd "$(dirname "$0")/../.." && pwd)}
# shellcheck source=/dev/null
. "$TOP/scenarios/lib/case.sh"

export QEMU="$TOP/build/qemu-tsan/qemu-system-x86_64"
need_file "$QEMU"
dir=$(CDPATH='' cd "$(dirname "$0")" && pwd)
set -- ops queues reset unplug faults late-writes iothread beside mid-transfer threads cx-health cx-keys
for name in "$@"; do
    mkdir -p "$name"
    # It goes on after a report: all of them are read at the end
    (cd "$name" && OUT=$PWD TIER=check ROUNDS=8 STEPS=5000 \
        TSAN_OPTIONS="suppressions=$dir/races.supp log_path=$PWD/tsan exitcode=0 detect_deadlocks=1 history_size=4" \
        sh "$dir/$name.sh" >log 2>&1)
    check_eq "$name passes under the sanitizer" 0 $?
done

# A report names who accessed what, and who did before, each with the functions that led there: it is of ours if one of the
# first six is in a file of the models. Locks in a wrong order have one of ours anywhere. Memory of the guest is written by
# several at a time, as in a machine; that is not meant. Nor is a coroutine, such as that of a migration that comes in, which is
# said to have a thread of its own (tid=0), and none of the locks of the thread that runs it.
cat ./*/tsan* >reports 2>/dev/null || :
awk -v RS='==================\n' '
    !/WARNING: ThreadSanitizer/ { next }
    {
        n = split($0, line, "\n")
        ours = 0
        guest = 0
        coroutine = 0
        for (i = 1; i <= n; i++) {
            if (line[i] ~ /^ *#[0-3] (flatview_(read|write)_continue_step|pln_(do_|store|fetch|crc32c|add_words))/) guest = 1
            if (line[i] ~ /^ *Thread T[0-9]+ .*tid=0,/) coroutine = 1
            if (line[i] ~ /hw\/peerlane\// && (line[i] ~ /^ *#[0-5] / || $0 ~ /lock-order-inversion/)) ours = 1
        }
        if (ours && !guest && !coroutine) print RS $0
    }' reports >ours
diag "$(grep -c 'WARNING: ThreadSanitizer' reports) reports, $(grep -c 'WARNING: ThreadSanitizer' ours) of them name the models"
check_eq "no data race in a file of the models" "" "$(grep SUMMARY ours | sort | uniq -c)"
finish
