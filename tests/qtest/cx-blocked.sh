#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a ConnectX whose wire takes no frames waits with little in its hands, loses nothing, and goes on without the wire when that is taken away
# tags: qtest
# tier: check
# timeout: 240
# shellcheck disable=SC2034,SC2086,SC2154  # for lib-cx.sh; numbers; variables of lib.sh and lib-cx.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/qtest/lib-cx.sh
. "$(dirname "$0")/lib-cx.sh"
# shellcheck source=tests/qtest/lib-cx-wire.sh
. "$(dirname "$0")/lib-cx-wire.sh"

need_tool cc
w=$qt_work/w
mkdir "$w"
qt_build cx-sink
sink_pid=
at_exit sink_end
sink_end() {
    [ -z "$sink_pid" ] || kill "$sink_pid" 2>/dev/null
    sink_pid=
    qt_cleanup
}

# begin KIND: cx0 with a queue pair of that kind, and another end of the cable that takes nothing yet
begin() {
    rm -f "$w"/a "$w"/a.host "$w"/in "$w"/out
    mkfifo "$w/in" "$w/out"
    "$qt_work/cx-sink" "$w/a" "$w/a.host" <"$w/in" >"$w/out" &
    sink_pid=$!
    exec 7>"$w/in" 8<"$w/out"
    read -r taken <&8
    qt_start -netdev "dgram,id=na,local.type=unix,local.path=$w/a.host,remote.type=unix,remote.path=$w/a" \
        -device peerlane-cx,id=cx0,addr=4,lid=1,netdev=na,mac=52:54:00:00:00:01
    device 0 $1
    posted_all=0
}
end() {
    qt_stop
    exec 7>&- 8<&-
    wait $sink_pid
    sink_pid=
}
# take N: so many datagrams are taken; how many of them were no ARP is in $taken
take() {
    echo $1 >&7
    read -r taken <&8
}
# met TIMEOUT RETRIES: connected to LID 2, whose address is known
met() {
    qom_counter cx0 frames-in
    met_in=$r
    ready 0 0002 000041 $1 $2 7
    take 1
    becomes "the answer to its question has come" $((met_in + 1)) qom_counter cx0 frames-in
}
# sent: how many frames the device has sent, in $r, when all is quiet
sent() { idle cx0; qom_counter cx0 frames-out; }

check "a socket takes few datagrams that nobody takes from it" test "$(cat /proc/sys/net/unix/max_dgram_qlen)" -le 20

# 8192 packets of 1 KiB for a wire that is slow: what is on its way is what fits into 256 KiB, or twice that while it is handed on
begin 01
met 0 0
qom_counter cx0 frames-out
asked=$r
go 8 0x600000 00000000 0x100000 $((8192 * 1024))
n=0 most=0
while [ $n -lt 200 ]; do
    take 4
    n=$((n + taken))
    sent
    [ $((r - asked - n)) -le $most ] || most=$((r - asked - n))
done
check "never more than 600 frames were on their way: $most" test $most -lt 600 || qt_finish
value_is "the message has not been sent" 0 qom_counter cx0 wqes
# Meanwhile nobody is asked for his address
qom_counter cx0 frames-dropped
dropped=$r
short 050a 00$QP; says "the queue pair is reset" 0 $r 8
sent
had=$r
m=0
while [ $m -lt 70 ]; do
    fixed 0502 00$QP 00000000 256; cmd $r 8
    fixed 0503 00$QP 00000000 256; at "$r" 32 60 44 000041 54 4:$((3 + m)); cmd $r 8
    short 050a 00$QP; cmd $r 8
    m=$((m + 1))
done
value_is "while the wire is blocked nobody is asked for an address" $had sent
value_is "which is counted" $((dropped + 70)) qom_counter cx0 frames-dropped
take $((had - asked - n))
check_eq "what was on its way comes" $((had - asked - n)) "$taken"
# A whole message, of which nothing is lost
met 0 0
qom_counter cx0 frames-out
asked=$r
go 8 0x600000 00000000 0x100000 $((2048 * 1024))
take 2048
check_eq "a message of 2048 packets comes whole" 2048 "$taken"
until_is "and is done" 1 wqes cx0
value_is "nothing was sent twice" $((asked + 2048)) sent
end

# The wire is taken away while it has frames: who waits for it goes on without, until his retries are over
for way in set_link netdev_del; do
    begin 00
    met 4 1
    go 8 0x600000 00000000 0x100000 65536
    sent
    before=$r
    qom_counter cx0 cqes
    cqes=$r
    case $way in
    set_link) qmp set_link '{"name":"cx0","up":false}' ;;
    netdev_del) qmp netdev_del '{"id":"na"}' ;;
    esac
    fails_with "$way: a message while the wire is blocked" 0x15
    sent
    check "$way: it was sent again, to nobody" test $r -gt $before
    if [ $way = set_link ]; then
        qmp set_link '{"name":"cx0","up":true}'
        take 0
        check "$way: of the frames before there is what the wire had: $taken" test $taken -lt 64
        ready 0 0002 000041 4 7 7
        go 8 0x600000 00000000 0x100000 8192
        take 8
        check_eq "$way: with the wire back, frames come" 8 "$taken"
    fi
    end
done
qt_finish
