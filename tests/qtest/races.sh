#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: QEMU under the thread sanitizer: cases in which several threads are at work find no data race in the models
# tags: qtest switch nvme
# tier: nightly
# timeout: 1800
TOP=${TOP:-$(CDPATH='' cd "$(dirname "$0")/../.." && pwd)}
# shellcheck source=/dev/null
. "$TOP/scenarios/lib/case.sh"

# A report names who accessed what, and who did before, each with the functions that led there: it is of ours if one of the
# first six is in a file of the models. Locks in a wrong order have one of ours anywhere. Memory of the guest is written by
# several at a time, as in a machine; that is not meant. It is mapped: the sanitizer has no "Location" for it, as it has for
# what is allocated, static or on a stack. Nor is a coroutine, such as that of a migration that comes in, which is said to
# have a thread of its own (tid=0), and none of the locks of the thread that runs it.
# ours FILE
ours() {
    awk -v RS='==================\n' '
    !/WARNING: ThreadSanitizer/ { next }
    {
        n = split($0, line, "\n")
        ours = 0
        access = 0
        coroutine = 0
        for (i = 1; i <= n; i++) {
            if (line[i] ~ /^ *#[0-3] (flatview_(read|write)_continue_step|pln_(do_|store|fetch|crc32c|add_words))/) access = 1
            if (line[i] ~ /^ *Thread T[0-9]+ .*tid=0,/) coroutine = 1
            if (line[i] ~ /hw\/peerlane\// && (line[i] ~ /^ *#[0-5] / || $0 ~ /lock-order-inversion/)) ours = 1
        }
        guest = access && $0 !~ /\n *Location is /
        if (ours && !guest && !coroutine) print RS $0
    }' "$1"
}

# sampled FILE: what has a report in it
sampled() { grep -o "sample_[a-z_]*" "$1" | sed "s/sample_//" | sort -u | xargs; }

# What that is worth, on a program that has such races
cc -O1 -g1 -fno-omit-frame-pointer -fsanitize=thread -Wall -Wextra -Wno-unused-parameter -Werror -o sample "$TOP/hw-model/test/races.c" >&2 || exit 1
TSAN_OPTIONS="log_path=$PWD/sample-tsan exitcode=0" ./sample
cat sample-tsan* >samples
check_eq "a race on anything is reported" "device_copy device_word guest_copy guest_else guest_word static_word" "$(sampled samples)"
ours samples >sample-ours
check_eq "on memory of the guest it is none of ours, where the engine accesses it for a descriptor" \
    "device_copy device_word guest_else static_word" "$(sampled sample-ours)"
rm -f sample-tsan*

export QEMU="$TOP/build/qemu-tsan/qemu-system-x86_64"
need_file "$QEMU"
dir=$(CDPATH='' cd "$(dirname "$0")" && pwd)
set -- ops queues reset unplug faults late-writes iothread beside mid-transfer threads \
    cx-health cx-keys cx-wire cx-peer cx-blocked cx-switch cx-ethernet cx-reset
for name in "$@"; do
    mkdir -p "$name"
    # It goes on after a report: all of them are read at the end
    (cd "$name" && OUT=$PWD TIER=check ROUNDS=8 STEPS=5000 \
        TSAN_OPTIONS="suppressions=$dir/races.supp log_path=$PWD/tsan exitcode=0 detect_deadlocks=1 history_size=4" \
        sh "$dir/$name.sh" >log 2>&1)
    check_eq "$name passes under the sanitizer" 0 $?
done

cat ./*/tsan* >reports 2>/dev/null || :
ours reports >reports-ours
diag "$(grep -c 'WARNING: ThreadSanitizer' reports) reports, $(grep -c 'WARNING: ThreadSanitizer' reports-ours) of them name the models"
check_eq "no data race in a file of the models" "" "$(grep SUMMARY reports-ours | sort | uniq -c)"
finish
