#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: random settings files, and random wrong calls of libcufile: answers as documented, no file changed but by accepted writes
# tags: cufile
# tier: check
# timeout: 900
#
# On the mock of the CUDA driver.  A seed that shows an error shows it again:
#   build/userlib/tests/cufile-json-fuzz 1 SEED
#   build/userlib/tests/cufile-fuzz DIR 1 SEED
set -u
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/userlib.sh"

# seeds of the texts and of the calls, and of both under the sanitizers
case $TIER in
check) texts=6 calls=48 texts_san=2 calls_san=16 ;;
all) texts=20 calls=200 texts_san=4 calls_san=64 ;;
*) texts=200 calls=2000 texts_san=40 calls_san=400 ;;
esac
seed=1
[ "$TIER" != nightly ] || seed=$(date +%s)
echo "seed $seed"

# fuzz NAME PROGRAM [DIR] ROUNDS; libpeerlane, which the library loads for a topology, is not sanitized
fuzz() {
	fuzz_name=$1
	shift
	mkdir dir
	LD_LIBRARY_PATH=$tests/mock:$tests/..:$BUILD/userlib "$@" "$seed" >"$fuzz_name.log" 2>&1
	ended "$fuzz_name" $? "$fuzz_name.log"
	rm -rf dir
}

tests=$BUILD/userlib/tests
need_file "$tests/cufile-json-fuzz" "$tests/cufile-fuzz"
fuzz texts "$tests/cufile-json-fuzz" $texts
fuzz calls "$tests/cufile-fuzz" "$PWD/dir" $calls
tests=$BUILD/userlib/sanitize/tests
need_file "$tests/cufile-json-fuzz" "$tests/cufile-fuzz"
fuzz texts_sanitized "$tests/cufile-json-fuzz" $texts_san
fuzz calls_sanitized "$tests/cufile-fuzz" "$PWD/dir" $calls_san
finish
