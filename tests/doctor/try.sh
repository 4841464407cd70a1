#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peerlane doctor --try on a false RDMA library: what it finds of each port, refusals, crashes, hangs
# tags: doctor rdma
# tier: check
# timeout: 60

. "$TOP/scenarios/lib/case.sh"
need_tool jq
tool=$BUILD/userlib/peerlane
false=$BUILD/userlib/tests/host/try
need_file "$tool" "$false/libibverbs.so.1"

# try MODE [OPTION…]: what it finds out about the machine, as facts in rec
try() {
	mode=$1
	shift
	LD_LIBRARY_PATH=$false TRY_VERBS=$mode "$tool" doctor --try "$@" --json --record rec >out 2>err
	status=$?
	check "$mode: it comes to a verdict" test "$status" -le 2 || sed 's/^/# /' err
	grep '^F /peerlane/trial' rec >facts
}
# fact PATH#KEY VALUE
fact() {
	check_eq "… $1" "$2" "$(sed -n "s,^F /peerlane/trial$1 ,,p" facts)"
}

try good
fact '#verbs' ok
fact '#end' ok
fact '/fake0#open' ok
fact '/fake0#host' ok
fact '/fake0#dmabuf' EOPNOTSUPP
fact '/fake0/ports/1#mtu' 4096
fact '/fake0/ports/2#mtu' 1024
fact '/fake0/ports/1#gid' ipv4
fact '/fake0/ports/1#gid_index' 1
fact '/fake0/ports/2#gid' ipv4
fact '/fake0/ports/3#mtu' ''
check "… without a GPU it says why" grep -q '^F /peerlane/trial#cuda cuInit failed: CUDA_ERROR_NO_DEVICE' facts

try dmabuf
fact '/fake0#dmabuf' EBADF
try locked
fact '/fake0#open' ok
fact '/fake0#host' ENOMEM
fact '#end' ok
try refused
fact '/fake0#open' EACCES
fact '/fake0#host' ''
try crash
fact '#end' 'killed by SIGSEGV'
fact '#verbs' ok
fact '/fake0#open' ''
try exit
fact '#end' 'ended with status 3'

for mode in hang linger; do
	before=$(date +%s%3N)
	try "$mode" --timeout 2
	took=$(($(date +%s%3N) - before))
	check "… after its 2 seconds ($took ms)" test "$took" -ge 2000 -a "$took" -le 20000
	fact '#end' 'no answer within 2 s'
done
check_eq "… and nothing of it is left" "" "$(pgrep -f "^$tool doctor --try" || true)"

# refused: 0, too much, no number, more than a number, and without --try
for seconds in 0 3601 -1 x 2s ''; do
	"$tool" doctor --try --timeout "$seconds" >out 2>err
	check_eq "--timeout '$seconds' is refused" 64 $?
	check "… with what it takes" grep -q -- "--timeout takes 1 to 3600 seconds, not \"$seconds\"" err
done
"$tool" doctor --timeout 5 >out 2>err
check_eq "--timeout without --try is refused" 64 $?
check "… with the reason" grep -q -- '--timeout 5 needs --try' err

mkdir empty
printf 'not a library\n' >empty/libibverbs.so.1
LD_LIBRARY_PATH=$OUT/empty "$tool" doctor --try --json --record rec >out 2>err
check "no libibverbs that can be loaded: the reason is a fact" \
	grep -q '^F /peerlane/trial#verbs libibverbs.so.1.*cannot.*install' rec
head -c 8192 /dev/zero >file
"$tool" doctor --try file --json >out 2>err
check "with a file, and without a GPU: a verdict" test $? -le 2
check "… and no measurement, with the reason" jq -e '.answer.trial | (has("calls") | not) and
	(.error | test("^ended with status 3: --gpu near: ."))' out
: >no-data
for each in no-data .; do
	"$tool" doctor --try "$each" >out 2>err
	check_eq "$each has nothing to read, and is refused" 64 $?
	check "… with the reason" grep -q -- "--try: .* is neither a file with data nor a block device" err
done
"$tool" doctor --try --timeout 5 gone >out 2>err
check_eq "a file that is not there is refused" 66 $?
"$BUILD/userlib/peerlane.static" doctor --try >out 2>err
check_eq "the program in one file cannot try" 64 $?
check "… and says so" grep -q 'cannot load the libraries' err
finish
