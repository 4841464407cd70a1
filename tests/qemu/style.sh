#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: devices of the machine: no cycle of files in the GPU and the switch, and no threads
# tier: check
# timeout: 60
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/calls.sh"
need_tool nm tsort
symbols=$BUILD/qemu/symbols
wire=$BUILD/wire/peerlane-wire
need_file "$symbols" "$wire"

# without what the build puts before their names
sed 's/^hw_peerlane_peerlane-//' "$symbols" >objects
for file in "$TOP"/hw-model/peerlane/*.c; do
	name=${file##*/peerlane-}
	grep -q "^${name}[.]o:" objects || echo "$name"
done >missing
check_eq "each file of the devices has its symbols here" "" "$(cat missing)"

grep -E '^(account|engine|gpu|switch)' objects | calls >pairs
check_no_cycle "GPU, switch and what they share"

# What runs beside others needs a ThreadSanitizer build of its tests: engines do, and qtest/races is that. The specification
# of threads says whose call what. A new thread belongs there, and here, with that build.
threads='U (g_thread_|qemu_thread_create|pthread_create|thrd_create|thread_pool_|iothread_|aio_context_new|async_run_on_cpu|clone|fork)'
check_eq "no device starts a thread but by its engine" "engine.c.o: qemu_thread_create" "$(grep -E "$threads" objects | sed "s, *U , ,")"
echo 'gpu-engine.c.o:                 U qemu_thread_create' >>objects
check_eq "one that did is seen" 2 "$(grep -cE "$threads" objects)"
nm -D "$wire" >symbols
check "the wire has symbols" grep -q ' U ppoll' symbols
check_eq "and no thread" "" "$(grep -E "$threads" symbols)"
finish
