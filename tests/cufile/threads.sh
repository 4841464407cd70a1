#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: libcufile on a mock of the CUDA driver, its own tests and those beside POSIX, under the sanitizer that watches threads
# tags: cufile
# tier: nightly
# timeout: 1200
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/userlib.sh"

build_userlib cufile threads
mkdir -p dir
# Children of a program that has threads make some
export TSAN_OPTIONS=$TSAN_OPTIONS:die_after_fork=0
"$BUILD/userlib/threads/tests/cufile-unit" "$PWD/dir" together >unit.log 2>&1
ended cufile_threads $? unit.log
"$BUILD/userlib/threads/tests/crew-unit" >crew.log 2>&1
ended crew_threads $? crew.log
"$BUILD/userlib/threads/tests/window-unit" >window.log 2>&1
ended window_threads $? window.log
"$BUILD/userlib/threads/tests/cufile-differ" "$PWD/dir" 100 1 >differ.log 2>&1
ended differ_threads $? differ.log
# A round is a process of its own; half of them have several callers
# libpeerlane, which the library loads for a topology, is not sanitized
LD_LIBRARY_PATH=$BUILD/userlib/threads/tests/mock:$BUILD/userlib/threads:$BUILD/userlib "$BUILD/userlib/threads/tests/cufile-fuzz" "$PWD/dir" 32 1 >fuzz.log 2>&1
ended fuzz_threads $? fuzz.log
rm -rf dir
finish
