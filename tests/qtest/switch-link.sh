#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: modelled links are busy, and transfers wait, as the formulas say
# tags: qtest switch
# tier: check
# timeout: 120
# shellcheck disable=SC2034,SC2086,SC2154  # numbers; variables of lib.sh; by eval
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/lib-switch.sh"
. "$(dirname "$0")/lib-switch-nvme.sh"
need_tool jq

# Downstream 4.0 x16, 100 ns; upstream 3.0 x2, 250 ns: the uplink is the narrow one
uplink=2 latency=250000
sw_start -global peerlane-switch-downstream.link-gen=4 \
    -global peerlane-switch-downstream.link-latency=100 \
    -global peerlane-switch-upstream.link-gen=3 \
    -global peerlane-switch-upstream.link-width=2 \
    -global peerlane-switch-upstream.link-latency=250 \
    -device peerlane-cx,id=cx0,bus=dp3
CX0=0x900

# The formulas of the specification once more.  Lines: REQUESTER read|write LENGTH
# HOPS..., in the order in which they happen, all at the same time; out come a
# line for each lane and for each requester.
model() {
    awk '
    function up(a, b) { return int((a + b - 1) / b) }
    function max(a, b) { return a > b ? a : b }
    # bytes on a link, in ps: 8 bits, 130/128, 16 lanes of 16 GT/s or 2 of 8
    function ps(link, bytes) {
        return up(bytes * 8 * 130 * 1000, 128 * (link ~ /^sw/ ? 8 * WIDTH : 16 * 16))
    }
    function latency(link) { return link ~ /^sw/ ? LATENCY : 100000 }
    function leg(who, n, at, len, wire, first, last,   i, lane, start, end, fin) {
        fin = at
        for (i = 1; i <= n; i++) {
            lane = hop[i]
            start = max(at, idle[lane])
            end = start + ps(lane, wire)
            if (i > 1)
                end = max(end, fin + ps(lane, last))
            count[lane]++; payload[lane] += len; bytes[lane] += wire
            busy[lane] += ps(lane, wire); wait[lane] += start - at
            queued[who] += start - at
            idle[lane] = end
            at = start + ps(lane, first) + latency(lane)
            fin = end + latency(lane)
        }
        return fin
    }
    function packets(who, n, at, len, most, head,   k) {
        k = up(len, most)
        return leg(who, n, at, len, len + k * head, (len < most ? len : most) + head, len - (k - 1) * most + head)
    }
    {
        n = NF - 3
        for (i = 1; i <= n; i++)
            hop[i] = $(i + 3)
        if ($2 == "write") {
            t = packets($1, n, NOW, $3, 256, 24)
        } else {
            t = leg($1, n, NOW, 0, 24 * up($3, 512), 24, 24)
            for (i = 1; i <= n; i++) {
                hop[i] = $(3 + n + 1 - i)
                if (!sub(/:up/, ":down", hop[i])) sub(/:down/, ":up", hop[i])
            }
            t = packets($1, n, t, $3, 256, 20)
        }
        who[$1]++; moved[$1] += $3; finish[$1] = max(finish[$1], t)
    }
    END {
        for (lane in count)
            printf "%s %d %d %d %d %d %d\n", lane, count[lane], payload[lane], bytes[lane], busy[lane] / 1000, wait[lane] / 1000, idle[lane] / 1000
        for (w in who)
            printf "%s %d %d %d %d %d %d\n", w, who[w], moved[w], NOW / 1000, finish[w] / 1000, queued[w] / 1000, 0
    }' NOW="${1:-0}" WIDTH="$uplink" LATENCY="$latency" | sort
}
# seen: what the emulator says, in the same form
seen() {
    for p in $ALL_PORTS; do
        qom_get "$p" modelled
        printf "%s\n" "$qmp_reply" | jq -r --arg p "$p" '.return | to_entries[] |
            select(.key | IN("modelled-up", "modelled-down")) | select(.value.transfers > 0) |
            "\($p):\(.key | ltrimstr("modelled-")) " + (.value |
            "\(.transfers) \(."payload-bytes") \(."wire-bytes") \(."busy-ns") \(."queued-ns") \(."free-ns")")'
    done
    for p in sw0 sw1; do
        qom_get $p modelled-requesters
        printf "%s\n" "$qmp_reply" | jq -r '.return[] | "\(.requester) \(."modelled-transfers") " +
            "\(."modelled-payload-bytes") \(."modelled-first-ns") \(."modelled-finish-ns") " +
            "\(."modelled-queued-ns") \(.late)"'
    done
}
# slices: what is wrong with them; there are none before the first transfer
slices() {
    for p in $ALL_PORTS; do
        qom_get "$p" modelled
        printf "%s\n" "$qmp_reply" | jq -r --arg p "$p" '.return | to_entries[] | select(.key | IN("modelled-up", "modelled-down")) |
            "\($p) \(.key)" as $of | .value | if .transfers == 0 then select(.slices != []) | "\($of): slices of nothing"
            else ((.slices | add) - ."busy-ns") as $off | ([.slices | to_entries[] | select(.value > 0).key] | max // 0) as $last |
                (select((.slices | length) != 64) | "\($of): not 64"),
                (select($off > 0 or $off < -64) | "\($of): their sum is off by \($off)"),
                (select(."slice-ns" as $slice | any(.slices[]; . > $slice)) | "\($of): busy for longer than a slice"),
                (select(."first-ns" + $last * ."slice-ns" > ."free-ns") | "\($of): busy later than it was free") end'
    done
}
# job_of GPU HOPS-TO-HOST: what a job does before and after its data
before_job() { echo "$1 read 64 $2" >>transfers; }
after_job() { printf '%s write 24 %s\n%s write 8 %s\n' "$1" "$2" "$1" "$2" >>transfers; }
transfer() { # GPU HOPS-TO-HOST read|write TARGET-NUMBER|host LENGTH HOPS
    before_job "gpu$1" "$2"
    echo "gpu$1 $3 $5 $6" >>transfers
    after_job "gpu$1" "$2"
    case $4 in
    host) tr_at=0x200000 ;;
    *) bar1_of "$4"; tr_at=$r ;;
    esac
    move "$1" "$3" "$tr_at" "$5"
    [ "$moved" = 1 ] || fail "GPU $1's DMA" "$moved"
}
agree() {
    model "$(($1 * 1000))" <transfers >want
    seen | sort >got
    check_eq "$2" "$(cat want)" "$(cat got)"
    check_eq "$2: slices hold it" "" "$(slices)"
}
: >transfers
qom_get dp0 modelled
check_eq "16 lanes of 16 GT/s less coding are 31.5 GB/s" "31507692307 100" \
    "$(printf "%s\n" "$qmp_reply" | jq -r '.return | "\(."modelled-bytes-per-second") \(."modelled-latency-ns")"')"
# link_is DESC BDF CAPABILITY-AT WANT: speed | width << 4, what can be and what is
link_is() {
    cfg_readl "$2" $(($3 + 0xc))
    li=$((r & 0x3ff))
    cfg_readl "$2" $(($3 + 0x10))
    check_eq "$1: link capabilities and status" "$(($4)) $(($4))" "$li $((r >> 16 & 0x3ff))"
}
link_is "a downstream port" $DP0 0x90 0x104
link_is "an upstream port" $SW0 0x90 0x23
cfg_cap $GPU0 0x10
link_is "a GPU" $GPU0 $r 0x104
cfg_cap $GPU8 0x10
link_is "a GPU below another port" $GPU8 $r 0x11
cfg_cap $CX0 0x10
link_is "a ConnectX" $CX0 $r 0x104
host0="dp0:up sw0:up"
transfer 0 "$host0" write 1 4096 "dp0:up dp1:down"
agree 0 "a write to a peer"
transfer 0 "$host0" read 1 4096 "dp0:up dp1:down"
agree 0 "a read from a peer"
transfer 0 "$host0" read host 4096 "$host0"
transfer 0 "$host0" write host 1000 "$host0"
agree 0 "to and from the host"
transfer 0 "$host0" write 8 4096 "$host0"
agree 0 "to a device at another root port, whose link is not modelled"
# the link between the switches is sw1's
host2="dpi0:up sw1:up sw0:up"
transfer 2 "$host2" write 0 8000 "dpi0:up sw1:up dp0:down"
transfer 2 "$host2" read 3 300 "dpi0:up dpi1:down"
transfer 0 "$host0" read 3 5000 "dp0:up sw1:down dpi1:down"
agree 0 "two switches"
acs_set $DP0 $ACS_RR
transfer 0 "$host0" write 1 4096 "dp0:up sw0:up sw0:down dp1:down"
transfer 0 "$host0" read 1 4096 "dp0:up sw0:up sw0:down dp1:down"
agree 0 "a redirected transfer goes over the uplink twice"

# What is refused moves nothing
acs_set $DP0 0
bar1_of 5
before_job gpu0 "$host0"
after_job gpu0 "$host0"
gpu_dma 0 write $r 4096
agree 0 "a refused transfer is none"
qt_stop

no_order() {
    qom_set sw0 modelled-restart false
    case $qmp_reply in *"can only be set to true"*) ;; *) return 1 ;; esac
}

# Two that share the uplink get half of it each, and alone all of it
uplink=1 latency=0
sw_start -global peerlane-switch-upstream.link-gen=3 -global peerlane-switch-upstream.link-width=1
qt clock_step 1000000
: >transfers
n=0
while [ $n -lt 32 ]; do
    transfer $((n % 2)) sw0:up write host 65536 sw0:up
    n=$((n + 1))
done
agree 1000000 "two requesters in turn"
rate() { awk -v who="$1" '$1 == who { printf "%d", $3 * 1000 / ($5 - $4) }' got; }
alone=$(awk 'BEGIN { printf "%d", 65536 / (65536 + 256 * 24) * 1000 * 128 / 130 }')
half() { # MB/s: within 7 percent of half, since the last one has the link to itself
    test $(($1 * 2)) -gt $((alone * 93 / 100)) -a $(($1 * 2)) -lt $((alone * 107 / 100))
}
r0=$(rate gpu0) r1=$(rate gpu1)
check "GPU 0 has half of $alone MB/s ($r0)" half "$r0"
check "GPU 1 has half of $alone MB/s ($r1)" half "$r1"
qt clock_step 5000000
check "the books begin anew" qom_set sw0 modelled-restart true
: >transfers
transfer 0 sw0:up write host 4096 sw0:up
agree 6000000 "and hold what came since"
# 64 slices of 64 us are less than 5 ms
qt clock_step 5000000
transfer 0 sw0:up write host 4096 sw0:up
qom_get sw0 modelled
check_eq "a gap lies between slices, which are as long as it takes" "6000000 128000 0 39 true" \
    "$(printf "%s\n" "$qmp_reply" | jq -r '.return."modelled-up" | [.slices | to_entries[] | select(.value > 0)] as $busy |
        "\(."first-ns") \(."slice-ns") \($busy | map(.key | tostring) | join(" ")) \($busy[0].value == $busy[1].value)"')"
check "no order to begin anew is refused" no_order
qt_stop

# Late: the drive has mapped its memory, and its data comes after the model said.
# The throttle holds all but the first command; "stop" lets them go.
sw_start -global peerlane-switch-upstream.link-gen=5 \
    -object throttle-group,id=slow,x-iops-total=1,x-iops-size=1 \
    -blockdev driver=null-co,node-name=null,size=1048576,read-zeroes=on \
    -blockdev driver=throttle,node-name=disk,throttle-group=slow,file=null \
    -device nvme,id=nvme0,bus=dp3,drive=disk,serial=nvme0
check "the drive is ready" nvme_setup
check "it has queues" nvme_queues
drive read 0 8 $BUF
submit 1 2 $BUF 0 0 0 7
submit 1 2 $BUF 0 0 0 7
late() { qom_get sw0 modelled-requesters; r=$(printf "%s\n" "$qmp_reply" | jq -r '.return[] | select(.requester == "nvme0").late'); }
late
check_eq "nothing is late" 0 "$r"
qt clock_step 1000000
qmp stop
late
check_eq "two transfers came later than modelled" 2 "$r"
qom_get dp0 modelled
link_is "a downstream port without link-gen" $DP0 0x90 0x11
check_eq "a link without link-gen is not modelled" '{"return": {}}' "$(echo "$qmp_reply" | tr -d '\r')"
qt_stop
for bad in link-gen=6 link-width=3 link-width=64 link-width=0; do
    "$QEMU" -L /usr/share/qemu -L /usr/share/seabios -machine q35 -accel qtest -display none -nodefaults \
        -device pcie-root-port,id=rp0 -device peerlane-switch-upstream,bus=rp0,$bad >bad.out 2>&1 </dev/null &&
        fail "$bad is refused" "it is not"
    check "$bad is refused" grep -q "$bad is " bad.out
done
qt_finish
