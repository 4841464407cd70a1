#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: mapping VRAM into BAR1, and every error of it
# tags: qtest
# tier: check
# timeout: 120
# shellcheck disable=SC2086,SC2154  # numbers; variables of lib.sh
. "$(dirname "$0")/lib.sh"

qt_start -device peerlane-gpu,id=gpu0,addr=4,vram-size=2M,bar1-size=1M,coherent=on,bar1-runs=4
gpu_setup 0 0x20
use 0
U=0x10000
MAP=$PLN_BAR1_CMD_MAP
UNMAP=$PLN_BAR1_CMD_UNMAP

bytes_are "unmapped BAR1 reads all ones" $B1 0xffffffffffffffff
memset $B1 8 0
value_is "accesses to it are counted" 2 counter $PLN_CNT_BAR1_UNMAPPED
bytes_are "and do not reach VRAM" $WIN 0x0000000000000000

memset $((WIN + 3 * U)) 0x40 0x33
memset $((WIN + 4 * U)) 0x40 0x44
value_is "map two units" 0 bar1 $MAP 5 2 $((3 * U))
bytes_are "first unit" $((B1 + 5 * U)) 0x33333333
bytes_are "second unit" $((B1 + 6 * U)) 0x44444444
bytes_are "before it: nothing" $((B1 + 5 * U - 4)) 0xffffffff
bytes_are "after it: nothing" $((B1 + 7 * U)) 0xffffffff
memset $((B1 + 7 * U - 4)) 4 0x99
bytes_are "a write reaches VRAM" $((WIN + 5 * U - 4)) 0x99999999
value_is "units used" 2 reg $PLN_REG_BAR1_UNITS_USED
value_is "runs used" 1 reg $PLN_REG_BAR1_RUNS_USED
value_is "the same VRAM twice" 0 bar1 $MAP 0 1 $((3 * U))
bytes_are "is seen twice" $B1 0x33333333

# Every error; none changes what is mapped
errors_at=$PLN_CNT_ERRORS
counter $errors_at
errors=$r
no() {
    no_d=$1
    no_e=$2
    shift 2
    value_is "$no_d" $no_e bar1 "$@"
    errors=$((errors + 1))
}
no "no units" $PLN_ERR_LENGTH $MAP 8 0 0
no "VRAM offset not aligned" $PLN_ERR_ALIGN $MAP 8 1 0x8000
no "VRAM offset not aligned, by one" $PLN_ERR_ALIGN $MAP 8 1 1
no "past the end of BAR1" $PLN_ERR_RANGE $MAP 15 2 0
no "behind BAR1" $PLN_ERR_RANGE $MAP 16 1 0
no "index wraps" $PLN_ERR_RANGE $MAP 0xffffffff 2 0
no "count wraps" $PLN_ERR_RANGE $MAP 8 0xffffffff 0
no "past the end of VRAM" $PLN_ERR_RANGE $MAP 8 2 $((31 * U))
no "behind VRAM" $PLN_ERR_RANGE $MAP 8 1 $((32 * U))
no "VRAM offset wraps" $PLN_ERR_RANGE $MAP 8 2 -65536
no "overlaps the first unit of a run" $PLN_ERR_OVERLAP $MAP 4 2 0
no "overlaps the last unit of a run" $PLN_ERR_OVERLAP $MAP 6 2 0
no "around a run" $PLN_ERR_OVERLAP $MAP 4 4 0
no "the same again" $PLN_ERR_OVERLAP $MAP 5 2 $((3 * U))
no "unmap: no units" $PLN_ERR_LENGTH $UNMAP 5 0 0
no "unmap: part of a run" $PLN_ERR_NOT_MAPPED $UNMAP 5 1 0
no "unmap: the other part" $PLN_ERR_NOT_MAPPED $UNMAP 6 1 0
no "unmap: more than a run" $PLN_ERR_NOT_MAPPED $UNMAP 5 3 0
no "unmap: nothing there" $PLN_ERR_NOT_MAPPED $UNMAP 9 1 0
no "no such command" $PLN_ERR_COMMAND 4 5 2 0
no "command 0" $PLN_ERR_COMMAND 0 5 2 0
value_is "every error was counted" $errors counter $errors_at
value_is "errors mapped nothing" 3 reg $PLN_REG_BAR1_UNITS_USED
bytes_are "and unmapped nothing" $((B1 + 5 * U)) 0x33333333

value_is "neighbours may touch" 0 bar1 $MAP 7 1 0
value_is "the last unit of both" 0 bar1 $MAP 15 1 $((31 * U))
no "all runs are in use" $PLN_ERR_NO_SPACE $MAP 10 1 0
value_is "unmap a run" 0 bar1 $UNMAP 5 2 0
bytes_are "it is gone" $((B1 + 5 * U)) 0xffffffff
bytes_are "VRAM is not" $((WIN + 3 * U)) 0x33333333
value_is "its neighbour is not" 3 reg $PLN_REG_BAR1_UNITS_USED
no "unmap it again" $PLN_ERR_NOT_MAPPED $UNMAP 5 2 0
value_is "there is room again" 0 bar1 $MAP 10 1 0
value_is "unmap all" 0 bar1 $PLN_BAR1_CMD_UNMAP_ALL 0 0 0
value_is "no units left" 0 reg $PLN_REG_BAR1_UNITS_USED
value_is "no runs left" 0 reg $PLN_REG_BAR1_RUNS_USED
bytes_are "all is gone" $B1 0xffffffff
value_is "all of BAR1 at once" 0 bar1 $MAP 0 16 $((16 * U))
memset $((B1 + 16 * U - 1)) 1 0xab
bytes_are "up to its last byte" $((WIN + 32 * U - 1)) 0xab
# What the monitor shows of the memory has plain names
bar1 $PLN_BAR1_CMD_MAP 0 1 0
qmp human-monitor-command '{"command-line":"info mtree"}'
case $qmp_reply in
*'[*]'*) fail "names of runs have no wildcards" ;;
*peerlane-gpu-bar1-run*) pass "names of runs have no wildcards" ;;
*) fail "a run is seen" "$qmp_reply" ;;
esac
qt_finish
