#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peerlane perf without a device: percentiles, sizes, ports, messages good, bad and damaged, strange peers; options
# tags: rdma perf
# tier: check
# timeout: 120

. "$TOP/scenarios/lib/case.sh"
tool=$BUILD/userlib/peerlane
host=$BUILD/userlib/tests/host
need_file "$tool" "$host/perf_unit" "$host/perf_peer_unit"

for unit in perf_unit perf_peer_unit; do
	"$host/$unit" >"$unit.log" 2>"$unit.err"
	status=$?
	ktap_from "$unit.log" "$unit"
	check_eq "$unit came to its end" 0 "$status" || tail -n 20 "$unit.err" | sed 's/^/# /'
done

# wrong STATUS WORDS ARGS…
wrong() {
	want=$1 words=$2
	shift 2
	"$tool" perf "$@" >out 2>&1
	check_eq "perf $*: status" "$want" "$?"
	check "perf $*: says \"$words\"" grep -q -e "$words" out || sed 's/^/# /' out
}
wrong 0 'usage: peerlane perf' --help
wrong 64 'unrecognized option' --no-such-option
wrong 64 '"0" is no size' --loopback --sizes 0
wrong 64 'does not know "fetch"' --loopback --op read,fetch
wrong 64 'does not know "gpu"' --loopback --memory gpu
wrong 64 'does not know "rate"' --loopback --test rate
wrong 64 'no name in ""' --loopback --op ''
wrong 64 'not "0"' --loopback --count 0
wrong 64 'not "257"' --loopback --depth 257
wrong 64 'not "0"' --loopback --depth 0
wrong 64 'not "10000001"' --loopback --count 10000001
wrong 64 'not "many"' --loopback --count many
wrong 64 'not "-1"' --loopback --warm-up -1
wrong 64 '"2G" is no size' --loopback --sizes 2G
wrong 64 'the first size is larger than the last' --loopback --sizes 8:4
wrong 64 'sizes: no size' --loopback --sizes ,
wrong 64 'ib-port needs a number from 1 to 254, not "0"' --loopback --ib-port 0
wrong 64 'not "255"' --loopback --ib-port 255
wrong 64 'not "256"' --loopback --gid-index 256
wrong 64 'not "-1"' --loopback --gid-index -1
wrong 64 'not "1024"' --loopback --gpu 1024
wrong 64 'not "0"' --loopback --wait 0
wrong 64 'not "86401"' --loopback --wait 86401
wrong 64 'not "0"' --loopback --timeout 0
wrong 64 'not "3601"' --loopback --timeout 3601
wrong 64 'not "0"' --loopback --seconds 0
wrong 64 'not "3601"' --loopback --seconds 3601
wrong 64 'not "0"' --tcp-port 0
wrong 64 'not "-1"' --loopback --seconds -1
wrong 64 'not "nan"' --loopback --seconds nan
wrong 64 'not "65536"' --tcp-port 65536
wrong 64 'one HOST, not "b" too' a b
wrong 64 'loopback needs no host' --loopback a
wrong 64 'keep is for the server' --keep a
wrong 64 'bind is for the server' --bind 127.0.0.1 --loopback
wrong 64 'sizes is for the client' --sizes 8
wrong 64 'gnuplot is for the client' --gnuplot x
wrong 1 'cannot be listened on' --bind 192.0.2.1 --wait 1
wrong 1 'has no address' --bind no.such.host.invalid --wait 1
LD_LIBRARY_PATH=$host/try TRY_VERBS=good
export LD_LIBRARY_PATH TRY_VERBS
wrong 1 'no client within 1 s' --bind 127.0.0.1 --tcp-port 18599 --wait 1
unset LD_LIBRARY_PATH TRY_VERBS
if [ ! -e /sys/class/infiniband ]; then
	wrong 3 'RDMA devices cannot be listed\|no RDMA device' --loopback
	wrong 3 'RDMA devices cannot be listed\|no RDMA device' --bind 127.0.0.1 --tcp-port 18599 --wait 60 # and no waiting
	check "… and no object is missing with --json" sh -c \
		"$tool perf --loopback --json 2>/dev/null | jq -e '.ok == false'"
fi
"$BUILD/userlib/peerlane.static" perf >out 2>&1
check_eq "the program in one file says that it cannot" 3 $?

finish
