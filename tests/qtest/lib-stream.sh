# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# Helpers of the tests that load changed migration streams; sourced after lib.sh.
#
# The stream that is right is "good", the one that is loaded "vmstate".  A case has machine, which starts QEMU with the
# arguments that it is given besides.
#
# shellcheck disable=SC2034,SC2086,SC2154  # variables for the cases; numbers; variables of lib.sh

# at BYTES: the only place of these bytes in the stream, which printf makes
at() {
    LC_ALL=C grep -obUaP "$1" good | cut -d: -f1
}
# sections DEVICE: where the state of each such device begins, and where it ends. A section is a name, the numbers of its
# instance (0) and version, the state, and 0x7e with the number of the section.
sections() {
    LC_ALL=C grep -obUaP '\x7e\x00\x00\x00[\x00-\xff][\x00\x04]' good | cut -d: -f1 >footers
    LC_ALL=C grep -obUaP "/$1"'\x00\x00\x00\x00' good | cut -d: -f1 |
        awk -v name="/$1" 'FILENAME != "-" { footer[n++] = $1; next }
            { from = $1 + length(name) + 8; for (i = 0; i < n && footer[i] < from; i++); print from, footer[i] }' footers -
}

# put OFFSET BYTES: into the stream
put() {
    # shellcheck disable=SC2059 # BYTES are octal
    printf "$2" | dd of=vmstate bs=1 seek=$(($1)) conv=notrunc 2>/dev/null
}

# load: $loaded is what became of the stream, completed or failed
load() {
    machine -incoming defer
    qmp migrate-incoming "{\"uri\":\"file:$OUT/vmstate\",\"exit-on-error\":false}"
    loaded=
    ld_tries=0
    while [ -z "$loaded" ] && more $ld_tries; do
        qmp query-migrate || { loaded="QEMU is gone"; cat "$OUT/qemu.log"; }
        case $qmp_reply in
        *'"status": "completed"'*) loaded=completed ;;
        *'"status": "failed"'*) loaded=failed ;;
        esac
        ld_tries=$((ld_tries + 1))
    done
}

# mutations STREAMS COMMAND: into each stream go one to three wrong bytes, at places of the ranges that the file "ranges"
# has, as WEIGHT FROM TO. Whatever is in it: QEMU takes it, does COMMAND and goes on, or refuses it, and ends by itself.
mutations() {
    mu_taken=0
    mu_failed=
    mu_seed=1
    while [ $mu_seed -le $1 ]; do
        cp good vmstate
        awk -v seed=$mu_seed '
            { sum += weight[NR] = $1; from[NR] = $2; to[NR] = $3 }
            END {
                srand(seed)
                for (n = 1 + int(rand() * 3); n; n--) {
                    x = rand() * sum
                    for (i = 1; x >= weight[i]; i++) x -= weight[i]
                    value = rand() < .5 ? int(rand() * 256) : substr("000001002127128255", 1 + 3 * int(rand() * 6), 3) + 0
                    printf "%d:%03o\n", from[i] + int(rand() * (to[i] - from[i])), value
                }
            }' ranges >places
        while IFS=: read -r mu_place mu_value; do
            put $mu_place "\\$mu_value"
        done <places
        load
        case $loaded in
        completed)
            mu_taken=$((mu_taken + 1))
            qmp cont
            "$2"
            ;;
        failed) ;;
        esac
        qmp query-status
        case $loaded$qmp_reply in
        completed*'"return"'* | failed*'"return"'*) ;;
        *) mu_failed="$mu_failed seed $mu_seed, at $(xargs <places): $loaded" ;;
        esac
        qt_stop
        mu_seed=$((mu_seed + 1))
    done
    check_eq "QEMU is whole after each of $1 streams with one to three wrong bytes" "" "$mu_failed"
    diag "$mu_taken of them were taken"
}
