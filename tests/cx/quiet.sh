#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the ConnectX works beside the guest's processors, which go on meanwhile, and needs none of the host's when it only waits
# tags: guest rdma
# tier: all
# timeout: 300
# exclusive
# shellcheck disable=SC2016,SC2317 # conditions of jq; vm.sh calls host_used
. "$TOP/scenarios/lib/case.sh"
. "$TOP/scenarios/lib/machine/vm.sh"
# shellcheck source=scenarios/lib/accounting/judge.sh
. "$TOP/scenarios/lib/accounting/judge.sh"
need_tool cc cpio jq
need_file "$QEMU" "$BUILD/guest/7.2/mlx5.cpio" "$BUILD/userlib/libcuda.so.1" "$BUILD/userlib/libpeerlane.so.0"

mkdir -p case/lib
cc -O2 -g -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -I"$TOP/userlib/cufile" -I"$TOP/userlib/include" \
	-I"$TOP/scenarios/lib/guest" -o case/cx-quiet "$TOP/hw-model/test/cx-quiet.c" \
	"$BUILD/userlib/libpeerlane.so.0" "$BUILD/userlib/libcufile.so.0" "$BUILD/userlib/libcuda.so.1" -libverbs -ljson-c || exit 1
cp "$TOP/tests/cx/guest/quiet" case/run
cp "$TOP/scenarios/lib/guest/guest.sh" case/lib/
printf '%s\n' rdma mlx5 >case/extras
printf '%s\n' mlx5_ib ib_uverbs >case/modules

# host_used GUEST: processor time of the emulator, all its threads, in ms
host_used() {
	sed 's/.*) //' "/proc/$(cat "$OUT/$1/qemu.pid")/stat" |
		awk -v hz="$(getconf CLK_TCK)" '{ printf "ok %.0f\n", ($12 + $13) * 1000 / hz }'
}

vm_run guest "$TOP/tests/cx/cx.topo" 7.2 "$OUT/case" 240 -device peerlane-cx,id=cx0,bus=sw0.0
status=$?
ktap_from guest/result.log
check_eq "the guest ended well" 0 "$status"
for fact in stream used_ms; do
	sed -n "s/^@fact $fact //p" guest/result.log | tr -d '\r'
done | jq -sc '{stream: .[0], used: .[1]}' >facts
diag "$(cat facts)"
check "who posts 2 GiB does not wait for it: that takes less than a tenth of the time" \
	holds facts '.stream | below(.posting; .seconds / 10)'
check "the guest's processors go on meanwhile: a sleep of 1 ms never takes a quarter of it" \
	holds facts '.stream | below(.longest_sleep; .seconds / 4) and .wakes > 20'
check "it is work: 0.3 s of the host's processors" holds facts '.used.streaming > 300'
check "waiting for a receive, a packet and a program costs a twentieth of a processor at most, beside what an idle machine does" \
	holds facts '.used | below(.waiting - .nothing; 3000 / 20)'
finish
