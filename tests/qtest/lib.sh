#!/bin/sh
# SPDX-License-Identifier: MIT
# Helpers of the guest-less tests: QEMU without CPUs, driven by the text
# protocol of qtest.  A case sources this file.
#
# shellcheck disable=SC2034,SC2086,SC2154  # variables for the cases; numbers

TOP=${TOP:-$(CDPATH='' cd "$(dirname "$0")/../.." && pwd)}
BUILD=${BUILD:-$TOP/build}
qt_own_out=
[ -n "${OUT-}" ] || { OUT=$(mktemp -d) && qt_own_out=$OUT; }
# The wider tiers use the QEMU that has sanitizers (make qemu-asan). It ends at the first thing that they find.
case ${TIER:-check} in
check) QEMU=${QEMU:-$BUILD/qemu/qemu-system-x86_64} ;;
*) QEMU=${QEMU:-$BUILD/qemu-asan/qemu-system-x86_64} ;;
esac
# More than the allocating function in GLib: fast_unwind_on_malloc=0, which makes QEMU start ten times more slowly
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
REGS_H=$TOP/hw-model/peerlane/peerlane-gpu-regs.h

# shellcheck source=/dev/null
. "$TOP/scenarios/lib/case.sh"

need_file "$QEMU"

qt_work=$(mktemp -d)
qt_pid=
qt_cleanup() {
    [ -z "$qt_pid" ] || kill -9 "$qt_pid" 2>/dev/null
    rm -rf "$qt_work" "${qt_own_out:-$qt_work}"
}
at_exit qt_cleanup
# A write to a QEMU that has died is an error like another
trap '' PIPE

# The numbers of the register header become shell variables of the same name
qt_regs() {
    awk '
    # continued comments hold no definitions
    /^#define +PLN_[A-Z0-9_]+[ \t]/ || /^#define   +PLN_/ {
        name = $2
        if (name ~ /\(/) next
        val = $3
        sub(/\/\*.*/, "", val)
        if (val ~ /^\(1u$/ && $4 == "<<") { v = $5; sub(/\).*/, "", v); print name "=$((1 << " v "))"; next }
        if (val ~ /^\(1ull$/ && $4 == "<<") { v = $5; sub(/\).*/, "", v); print name "=$((1 << " v "))"; next }
        sub(/ull$|u$/, "", val)
        if (val ~ /^(0x[0-9a-fA-F]+|[0-9]+)$/) print name "=" val
    }
    /^enum/ { n = 0; inenum = 1; next }
    /^}/ { inenum = 0 }
    inenum && /^ +PLN_/ { name = $1; sub(/,.*/, "", name); print name "=" n++ }
    ' "$REGS_H"
}
eval "$(qt_regs)"

# qt_start ARGS...: start QEMU; descriptors 3 and 4 are qtest, 5 and 6 QMP.
qt_start() {
    rm -f "$qt_work"/*.in "$qt_work"/*.out
    mkfifo "$qt_work/qt.in" "$qt_work/qt.out" "$qt_work/qmp.in" "$qt_work/qmp.out"
    # it ends with this case, even if that is killed outright
    setpriv --pdeathsig KILL "$QEMU" -L /usr/share/qemu -L /usr/share/seabios \
        -machine q35 -accel qtest -m 64M -nodefaults -no-user-config \
        -display none -qtest stdio -qtest-log none \
        -chardev "pipe,id=qmp,path=$qt_work/qmp" -mon chardev=qmp,mode=control \
        "$@" <"$qt_work/qt.in" >"$qt_work/qt.out" 2>"$OUT/qemu.log" &
    qt_pid=$!
    exec 3>"$qt_work/qt.in" 4<"$qt_work/qt.out"
    # It answers: it has opened the QMP pipes too
    qt endianness
    exec 5>"$qt_work/qmp.in" 6<"$qt_work/qmp.out"
    qmp qmp_capabilities
}

# Sanitizers look for leaks when QEMU ends by itself, after all devices are gone
qt_stop() {
    case $QEMU in
    */qemu-asan/*)
        # Not by QMP: its thread may look for the dispatcher when "quit" has ended that already
        kill -TERM "$qt_pid"
        wait "$qt_pid"
        check_eq "the sanitizers report nothing" 0 $? || sed -n '1,60s/^/# /p' "$OUT/qemu.log"
        ;;
    *)
        kill -9 "$qt_pid" 2>/dev/null
        wait "$qt_pid" 2>/dev/null
        ;;
    esac
    qt_pid=
    exec 3>&- 4<&- 5>&- 6<&-
}

# The end of every case here
qt_finish() {
    [ -z "$qt_pid" ] || qt_stop
    finish
}

# qt COMMAND...: one qtest command; its answer without the OK in $r
qt() { qts "$*"; }
# qts COMMAND...: several, each of which is one word here; the last one's answer, and in $answers all of them
qts() {
    answers=
    printf '%s\n' "$@" >&3 || { echo "# QEMU is gone"; cat "$OUT/qemu.log"; exit 1; }
    qt_status=0
    for qt_command in "$@"; do
        while :; do
            read -r r <&4 || { echo "# QEMU died on: $qt_command"; cat "$OUT/qemu.log"; exit 1; }
            case $r in
            OK*) r=${r#OK}; r=${r# }; answers="$answers $r"; break ;;
            IRQ*) ;;
            # The answers to the others are still read
            *) echo "# qtest says '$r' to: $qt_command"; qt_status=1; break ;;
            esac
        done
    done
    return $qt_status
}

# qmp COMMAND [ARGUMENTS-JSON]: the reply in $qmp_reply, events before it are
# appended to $qmp_events
qmp_events=
qmp() {
    if [ $# -gt 1 ]; then
        echo "{\"execute\":\"$1\",\"arguments\":$2}" >&5
    else
        echo "{\"execute\":\"$1\"}" >&5
    fi
    while read -r qmp_reply <&6; do
        case $qmp_reply in
        '{"return"'* | '{"error"'*) return 0 ;;
        *) qmp_events="$qmp_events$qmp_reply" ;;
        esac
    done
    return 1
}
qom_get() { qmp qom-get "{\"path\":\"/machine/peripheral/$1\",\"property\":\"$2\"}"; }
qom_set() {
    qmp qom-set "{\"path\":\"/machine/peripheral/$1\",\"property\":\"$2\",\"value\":$3}"
    case $qmp_reply in '{"return"'*) return 0 ;; *) echo "$qmp_reply"; return 1 ;; esac
}

# qt_build NAME: the program of hw-model/test is there, as $qt_work/NAME
qt_build() {
    [ -x "$qt_work/$1" ] || cc -O1 -g -Wall -Wextra -Werror -o "$qt_work/$1" "$TOP/hw-model/test/$1.c" >&2 || exit 1
}

# qt_feed <LINES >ANSWERS: many lines of qtest, and the answer to each; one "engine-idle ID" is a wait for that
qt_feed() {
    qt_build qtest-feed
    "$qt_work/qtest-feed" || { cat "$OUT/qemu.log" >&2; exit 1; }
}

# Addresses are arithmetic expressions; 64-bit values go to QEMU as they are,
# since the arithmetic of a shell has 63 bits.
writel() { qt writel $(($1)) $(($2)); }
writeq() { qt writeq $(($1)) "$2"; }
readl() { qt readl $(($1)); r=$((r)); }
# A 64-bit value: a decimal number, or 0x... when it is too large for one
number() { case $1 in 0x[0-7]*) r=$(($1)) ;; *) r=$1 ;; esac }
readq() { qt readq $(($1)); number $r; }
# idle ID: wait, bounded, until the engine of a GPU or a ConnectX has done what it has; $r stays
idle() {
    id_r=$r id_n=0
    while qt engine-idle "$1" && [ "$r" != 1 ]; do
        more $id_n || { echo "# $1 is not idle"; return 1; }
        id_n=$((id_n + 1))
    done
    r=$id_r
}
memset() { qt memset $(($1)) $(($2)) "$3"; }
# rdhex ADDR LEN: bytes as 0x...
rdhex() { qt read $(($1)) $(($2)); }
wrhex() { qt write $(($1)) $((${#2} / 2 - 1)) "$2"; }

# Configuration space by ports, of a device named by bus << 8 | devfn
cfg() { qts "outl 0xcf8 $((0x80000000 | $1 << 8 | $2 & 0xfc))" "$3"; }
cfg_readl() { cfg "$1" "$2" "inl 0xcfc"; r=$((r)); }
cfg_writel() { cfg "$1" "$2" "outl 0xcfc $(($3))"; }
cfg_writew() { cfg "$1" "$2" "outw $((0xcfc + ($2 & 2))) $(($3))"; }

# cfg_cap DEVFN ID: offset of a capability in $r
cfg_cap() {
    cfg_readl "$1" 0x34
    cap=$((r & 0xfc))
    while [ "$cap" -ne 0 ]; do
        cfg_readl "$1" "$cap"
        if [ $((r & 0xff)) -eq $(($2)) ]; then
            r=$cap
            return 0
        fi
        cap=$((r >> 8 & 0xfc))
    done
    return 1
}

# The addresses that the tests give to BARs.  GPU number N (0, 1, ...):
bar0_of() { r=$((0xe0000000 + $1 * 0x100000)); }
bar1_of() { r=$((0x800000000 + $1 * 0x100000000)); }
win_of() { r=$((0x1000000000 + $1 * 0x1000000000)); }

# gpu_setup N DEVFN: give GPU N, at DEVFN, its BARs, and enable MSI-X with all
# vectors unmasked; vector V writes 0x100 + V to MSIX_AT + 4 * V.
gpu_setup() {
    bar0_of "$1"
    gs_b0=$r
    bar1_of "$1"
    gs_b1=$r
    win_of "$1"
    gs_win=$r
    cfg_writel "$2" 0x10 "$gs_b0"
    cfg_writel "$2" 0x14 $((gs_b1 & 0xffffffff))
    cfg_writel "$2" 0x18 $((gs_b1 >> 32))
    cfg_writel "$2" 0x1c $((gs_win & 0xffffffff))
    cfg_writel "$2" 0x20 $((gs_win >> 32))
    cfg_writew "$2" 4 6
}
MSIX_AT=0x3000
msix_setup() {
    bar0_of "$1"
    ms_b0=$r
    ms_v=0
    while [ $ms_v -lt $((PLN_MSIX_VECTORS)) ]; do
        ms_e=$((ms_b0 + PLN_MSIX_TABLE + 16 * ms_v))
        qts "writel $ms_e $((MSIX_AT + 4 * ms_v))" "writel $((ms_e + 4)) 0" \
            "writel $((ms_e + 8)) $((0x100 + ms_v))" "writel $((ms_e + 12)) 0"
        ms_v=$((ms_v + 1))
    done
    memset $MSIX_AT 0x100 0
    cfg_cap "$2" 0x11
    cfg_writew "$2" $((r + 2)) 0x8000
}

# iommu_on BUS DEVFN ENTRY...: the IOMMU translates for that device: a page of 1 GiB for each entry, which is an address and
# 0x83, or 0x81 without the right to write. The tables of VT-d are at 2 MiB.
VTD=0xfed90000
iommu_on() {
    io_root=0x200000 io_context=$((0x201000 + 16 * $2)) io_page=0x202000
    memset $io_root 0x3000 0
    writeq $((io_root + 16 * $1)) 0x201001
    writeq $io_context $((io_page | 1))
    writeq $((io_context + 8)) 0x101
    shift 2
    for io_entry in "$@"; do
        writeq $io_page "$io_entry"
        io_page=$((io_page + 8))
    done
    writeq $((VTD + 0x20)) $io_root
    writel $((VTD + 0x18)) 0x40000000
    writel $((VTD + 0x18)) 0x80000000
    readl $((VTD + 0x1c))
    check_eq "translation is on" 1 $((r >> 31 & 1))
}

# use N: the registers of GPU N are meant from here on
use() {
    bar0_of "$1"
    B0=$r
    bar1_of "$1"
    B1=$r
    win_of "$1"
    WIN=$r
}
reg() { readl $((B0 + $1)); }
setreg() { writel $((B0 + $1)) "$2"; }
reg64() { reg "$1"; r_lo=$r; reg $(($1 + 4)); r=$((r << 32 | r_lo)); }
setreg64() { qts "writel $((B0 + $1)) $(($2 & 0xffffffff))" "writel $((B0 + $1 + 4)) $(($2 >> 32 & 0xffffffff))"; }
counter() { reg64 $((0x200 + 8 * $1)); }
qreg() { reg $((0x1000 + 0x100 * $1 + $2)); }
qset() { setreg $((0x1000 + 0x100 * $1 + $2)) "$3"; }

# bar1 CMD INDEX COUNT VRAM: a BAR1 command; its result in $r
bar1() {
    setreg $PLN_REG_BAR1_INDEX "$2"
    setreg $PLN_REG_BAR1_COUNT "$3"
    setreg64 $PLN_REG_BAR1_VRAM "$4"
    setreg $PLN_REG_BAR1_CMD "$1"
    reg $PLN_REG_BAR1_RESULT
}

# Queue Q of every GPU has its ring of 16 descriptors at RING + 0x1000 * Q
RING=0x10000
RING_SIZE=16
COMP=0x8000
queue_setup() {
    qs_base=$((RING + 0x1000 * $1))
    qs_q=$((B0 + 0x1000 + 0x100 * $1))
    qts "writel $((qs_q + PLN_Q_CTRL)) $PLN_Q_CTRL_RESET" \
        "writel $((qs_q + PLN_Q_BASE)) $((qs_base & 0xffffffff))" "writel $((qs_q + PLN_Q_BASE + 4)) $((qs_base >> 32))" \
        "writel $((qs_q + PLN_Q_SIZE)) $RING_SIZE" "writel $((qs_q + PLN_Q_CTRL)) $PLN_Q_CTRL_ENABLE"
    eval "tail_$1=0"
}

# desc Q [field=value]...: put a descriptor on queue Q without ringing.  Fields
# are op flags arg res src dst len imm comp fence; what is not named is 0, but
# for comp and fence, which default to COMP and 1 (with flag COMP set).
desc() {
    de_q=$1
    shift
    op=0 flags=$PLN_DESC_F_COMP arg=0 res=0 src=0 dst=0 len=0 imm=0 comp=$COMP fence=1
    for de_f in "$@"; do
        de_v=${de_f#*=}
        case ${de_f%%=*} in
        op) op=$de_v ;;
        flags) flags=$de_v ;;
        +flags) flags=$((flags | de_v)) ;;
        arg) arg=$de_v ;;
        res) res=$de_v ;;
        src) src=$de_v ;;
        dst) dst=$de_v ;;
        len) len=$de_v ;;
        imm) imm=$de_v ;;
        comp) comp=$de_v ;;
        fence) fence=$de_v ;;
        *) echo "# desc: no field $de_f"; exit 1 ;;
        esac
    done
    eval "de_t=\$tail_$de_q"
    de_a=$((RING + 0x1000 * de_q + 64 * de_t))
    qts "writel $de_a $op" "writel $((de_a + 4)) $flags" "writel $((de_a + 8)) $arg" "writel $((de_a + 12)) $res" \
        "writeq $((de_a + 16)) $src" "writeq $((de_a + 24)) $dst" "writeq $((de_a + 32)) $len" "writeq $((de_a + 40)) $imm" \
        "writeq $((de_a + 48)) $comp" "writeq $((de_a + 56)) $fence"
    eval "tail_$de_q=$(((de_t + 1) % RING_SIZE))"
}

# ring Q: ring the doorbell
ring() { eval "qset \$1 \$PLN_Q_TAIL \$tail_$1"; }

# more TRIES: may a wait that has looked so often look again? For a minute: how often that is depends on the host
more() {
    [ $(($1 % 2000)) -eq 1999 ] || return 0
    mo_now=$(date +%s)
    [ "$1" -gt 2000 ] || mo_end=$((mo_now + 60))
    [ "$mo_now" -lt "$mo_end" ]
}

# settle Q: wait, bounded, until queue Q rests; its status in $r
settle() {
    se_queue=$1 se_n=0 se_q=$((B0 + 0x1000 + 0x100 * $1))
    while more $se_n; do
        qts "readl $((se_q + PLN_Q_STATUS))" "readl $((se_q + PLN_Q_HEAD))" "readl $((se_q + PLN_Q_TAIL))"
        set -- $answers
        r=$(($1))
        case $r in
        "$PLN_Q_RUNNING") ;;
        "$PLN_Q_IDLE") [ $2 != $3 ] || return 0 ;;
        *) return 0 ;;
        esac
        se_n=$((se_n + 1))
    done
    echo "# queue $se_queue does not come to rest"
    return 1
}

# half_way ID BDF Q: what was put on queue Q of a GPU begins, and is left in the middle: by queue 3 the GPU puts itself to
# sleep (D3hot) after the first slice of that work, or the second.  awake BDF: it goes on.
ECAM=0xb0000000
ecam_on() {
    cfg_writel 0 0x64 0
    cfg_writel 0 0x60 $((ECAM | 1))
}
half_way() {
    ecam_on
    cfg_cap "$2" 1
    hw_pm=$((cap + 4))
    queue_setup 3
    desc 3 op=$PLN_OP_NOP flags=0
    desc 3 op=$PLN_OP_IMM_WRITE flags=$PLN_DESC_F_DST_BUS arg=2 imm=3 dst=$((ECAM + ($2 << 12) + hw_pm))
    # Both queues begin at once
    qom_set "$1" fault-hung-engine true
    ring "$3"
    ring 3
    qom_set "$1" fault-hung-engine false
    hw_n=0
    while cfg_readl "$2" $hw_pm && [ $((r & 3)) -ne 3 ]; do
        more $hw_n || { echo "# $1 does not go to sleep"; return 1; }
        hw_n=$((hw_n + 1))
    done
}
awake() {
    cfg_cap "$1" 1
    cfg_writew "$1" $((cap + 4)) 0
}

# job Q field=value...: one descriptor, run to its end.  Then st is the queue's
# status, c_fence, c_status, c_result, c_bytes are of the completion record.
job() {
    memset $COMP 32 0xee
    desc "$@"
    ring "$1"
    settle "$1"
    st=$r
    qts "readl $((COMP + 8))" "readq $((COMP))" "readq $((COMP + 16))" "readq $((COMP + 24))"
    set -- $answers
    c_status=$(($1))
    number $2; c_fence=$r
    number $3; c_result=$r
    number $4; c_bytes=$r
}

# job_is DESC STATUS RESULT BYTES: what the last job must have said
job_is() {
    check_eq "$1" "queue $PLN_Q_IDLE status $2 result $3 bytes $4" \
        "queue $st status $c_status result $c_result bytes $c_bytes"
}

# bytes_are DESC ADDR 0x...: memory must hold these bytes
bytes_are() {
    rdhex "$2" $((${#3} / 2 - 1))
    check_eq "$1" "$3" "$r"
}

# value_is DESC WANT COMMAND...: what COMMAND leaves in $r must be WANT
value_is() {
    vi_d=$1
    vi_w=$(($2))
    shift 2
    "$@"
    check_eq "$vi_d" "$vi_w" "$r"
}

# counter_of NAME FILE...: nothing but the number, of the QOM property
qom_counter() {
    qom_get "$1" counters
    r=${qmp_reply##*\""$2"\": }
    r=${r%%[,\}]*}
}

# event PATTERN: wait, bounded, for an event that contains PATTERN
event() {
    ev_n=0
    while more $ev_n; do
        qmp query-status
        case $qmp_events in *$1*) return 0 ;; esac
        ev_n=$((ev_n + 1))
    done
    echo "# no event $1 in $qmp_events"
    return 1
}

# A fork costs more than a hundred steps of a shell, so what is called often does without:
# hex PART...: the parts behind each other, in $r; a part DIGITS:N is a number in so many digits of hexadecimal
hex() {
    he_all=
    for r in "$@"; do
        case $r in
        *:*)
            he_digits=${r%:*} he_n=$((${r#*:})) r=
            while [ ${#r} -lt $he_digits ]; do
                case $((he_n & 15)) in
                10) r=a$r ;;
                11) r=b$r ;;
                12) r=c$r ;;
                13) r=d$r ;;
                14) r=e$r ;;
                15) r=f$r ;;
                *) r=$((he_n & 15))$r ;;
                esac
                he_n=$((he_n >> 4))
            done
            ;;
        esac
        he_all=$he_all$r
    done
    r=$he_all
}
# repeat COUNT WORD: WORD COUNT times, in $r
repeat() {
    r='' rp_n=$1 rp_words=$2
    while [ "$rp_n" -gt 0 ]; do
        [ $((rp_n & 1)) -eq 0 ] || r=$r$rp_words
        rp_words=$rp_words$rp_words
        rp_n=$((rp_n >> 1))
    done
}

# --- a machine's state in a file -------------------------------------------

# qt_saved: the state of the stopped machine goes to $OUT/vmstate
qt_saved() {
    qmp migrate "{\"uri\":\"file:$OUT/vmstate\"}"
    case $qmp_reply in '{"error"'*) echo "$qmp_reply"; return 1 ;; esac
    qt_tries=0
    while more $qt_tries; do
        qmp query-migrate
        case $qmp_reply in
        *'"status": "completed"'*) return 0 ;;
        *'"status": "failed"'*) echo "$qmp_reply"; return 1 ;;
        esac
        qt_tries=$((qt_tries + 1))
    done
    return 1
}

# qt_loaded: the machine started with -incoming "file:$OUT/vmstate" has it all
qt_loaded() {
    qt_tries=0
    while more $qt_tries; do
        qmp query-status
        case $qmp_reply in *'"status": "paused"'*) return 0 ;; esac
        qt_tries=$((qt_tries + 1))
    done
    cat "$OUT/qemu.log"
    return 1
}
