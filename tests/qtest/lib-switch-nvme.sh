# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# An NVMe drive below dp3, with one pair of queues; after lib.sh.
#
# shellcheck disable=SC2034,SC2086,SC2154  # numbers; variables for the cases

NVME=0x900
REGS=0xe0400000
ADMIN=0x100000          # submissions; completions follow 4 KiB later
IO=0x102000
PRPS=0x104000
BUF=0x110000

# nvme_setup: give the drive its addresses, and enable it; fails if it does not
# get ready
nvme_setup() {
    bridge $DP3 2 9 9 4 4
    cfg_writel $NVME 0x10 $REGS
    cfg_writel $NVME 0x14 0
    cfg_writew $NVME 4 6
    writel $((REGS + 0x24)) 0x000f000f
    writeq $((REGS + 0x28)) $((ADMIN))
    writeq $((REGS + 0x30)) $((ADMIN + 0x1000))
    memset $ADMIN 0x4000 0
    writel $((REGS + 0x14)) 0x00460001
    slot_0=0 slot_1=0
    ns_n=0
    while more $ns_n; do
        readl $((REGS + 0x1c))
        [ $((r & 3)) -ne 1 ] || return 0
        ns_n=$((ns_n + 1))
    done
    return 1
}

# nvme_queues: create the pair of queues; fails if the drive refuses
nvme_queues() {
    nvme 0 5 $((IO + 0x1000)) 0 0x000f0001 1 0
    [ "$r" = 0 ] || return 1
    nvme 0 1 $IO 0 0x000f0001 0x00010001 0
    [ "$r" = 0 ]
}

# submit QUEUE OPCODE PRP1 PRP2 DW10 DW11 DW12 [QTEST-COMMAND]: a command, for namespace 1
# if $nsid is no other, and its doorbell; QEMU gets both at once with QTEST-COMMAND
submit() {
    eval "co_slot=\$slot_$1"
    co_q=$((ADMIN + 0x2000 * $1))
    co_c=$((co_q + 0x1000 + 16 * (co_slot % 16)))
    co_phase=$((1 - co_slot / 16 % 2))
    co_s=$((co_q + 64 * (co_slot % 16)))
    memset $co_s 64 0
    writel $co_s $(($2 | co_slot << 16))
    writel $((co_s + 4)) ${nsid:-1}
    qt writeq $((co_s + 24)) $(($3))
    qt writeq $((co_s + 32)) $(($4))
    writel $((co_s + 40)) "$5"
    writel $((co_s + 44)) "$6"
    writel $((co_s + 48)) "$7"
    co_slot=$((co_slot + 1))
    eval "slot_$1=$co_slot"
    co_bell="writel $((REGS + 0x1000 + 8 * $1)) $((co_slot % 16))"
    if [ $# -lt 8 ]; then
        qt $co_bell
    else
        printf '%s\n%s\n' "$8" "$co_bell" >&3
        for _ in 1 2; do
            read -r r <&4 || { echo "# QEMU died"; cat "$OUT/qemu.log"; exit 1; }
        done
    fi
}

# completed: has the last command a completion?
completed() {
    readl $((co_c + 12))
    [ $((r >> 16 & 1)) -eq $co_phase ]
}

# nvme QUEUE OPCODE PRP1 PRP2 DW10 DW11 DW12: its status in $r (0 success, 4
# Data Transfer Error, none when it did not end)
nvme() {
    submit "$@"
    co_n=0
    while more $co_n; do
        if completed; then
            co_status=$((r >> 17 & 0x7ff))
            writel $((REGS + 0x1004 + 8 * $1)) $((co_slot % 16))
            r=$co_status
            return
        fi
        co_n=$((co_n + 1))
    done
    r=none
}

# drive read|write BLOCK BLOCKS PRP1 [PRP2]
drive() {
    dr_op=1
    [ "$1" = write ] || dr_op=2
    nvme 1 $dr_op "$4" "${5-0}" "$2" 0 $(($3 - 1))
}
