#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peerlane topo and stats --fabric: options, output, exit statuses, bad records
# tags: topo
# tier: check
# timeout: 60
set -u
. "$TOP/scenarios/lib/case.sh"
need_tool jq
tool=$BUILD/userlib/peerlane
need_file "$tool"
rec=$TOP/tests/topo/records

# status WANT ARGS…: run the tool, keep what it says
status() {
	want=$1
	shift
	"$tool" "$@" >out 2>err
	check_eq "status $want: peerlane $*" "$want" $?
	[ "$want" -eq 0 ] || check_eq "one clear line, nothing printed" "0 1" \
		"$(wc -c <out) $(grep -c '^peerlane: ' err)"
}
said() { check "says: $1" grep -q -e "$1" out err; }

status 0 topo --help
said 'usage: peerlane topo'
status 64 topo x
said 'takes no "x"'
"$tool" topo --from >out 2>err
check_eq "status 64: --from without a file" 64 $?
"$tool" topo --nothing >out 2>err
check_eq "status 64: no such option" 64 $?
status 64 topo --record r --json
said 'no other option'
status 64 topo --record r --from "$rec/guest-direct.rec"
check_false "nothing was written" test -e r
status 64 topo --json --tree
said 'prints all'
status 66 topo --from none.rec
said 'none.rec: No such file'
printf 'V 1\nF /a b\nwhat\n' >bad.rec
status 65 topo --from bad.rec
said 'bad.rec: line 3: a line begins with'
printf 'V 1\n' >empty.rec
status 66 topo --from empty.rec
said 'empty.rec: No data'
printf 'V 1\nE /sys/bus/pci/devices ENOENT\n' >nopci.rec
status 66 topo --from nopci.rec
said 'has no PCI bus'
status 73 topo --record none/r
said 'none/r: No such file'
status 0 topo --record r
check "a record of this machine" grep -q '^D /sys/bus/pci/devices ' r
status 0 topo --from r

status 0 topo --from "$rec/guest-staged.rec"
said '^ *PIX  '
said 'downstream port 1234:9e73.* RR+ .*redirects'
said 'P2PDMA on (/proc/kallsyms)'
check_false "pairs are left out" grep 'GPU0 NVME0:' out
status 0 topo --from "$rec/guest-staged.rec" --pairs
said '^GPU0 NVME0: PIX, staged: ACS redirect is on at 0000:02:00.0, 0000:02:01.0; host bridge 8086:29c0 .*not on the list'
check_false "the tree is left out" grep 'downstream port' out
status 0 topo --from "$rec/guest-staged.rec" --json
check "one object of its shape" jq -se 'length == 1 and (.[0] | .machine.p2pdma == true
	and (.devices | length == 2) and (.bridges | length == 4) and (.hosts | length == 1)
	and .pairs[0].a == "GPU0" and .missing == [])' out

# with a piece of a record gone, it says what is missing and judges less
without() { grep -v "$1" "$rec/guest-direct.rec" >less.rec; }
way() { "$tool" topo --from less.rec --json | jq -r '.pairs[0].verdict'; }
less() { # DESC PATTERN VERDICT MISSING
	without "$2"
	check_eq "$1: verdict" "$3" "$(way)"
	check "$1: it says so" sh -c "missing=\$('$tool' topo --from less.rec | grep '^missing: ') &&
		printf '%s\n' \"\$missing\" | grep -q '$4'"
}
less "no configuration of the kernel" '^[FE] .*P2PDMA\|kallsyms' unknown 'kernel configuration'
less "no CPU" 'cpuinfo' direct 'CPU: /proc/cpuinfo: No data'
less "no config space" '02:00.0/config' unknown 'the config space of 0000:02:00.0 cannot be read: No data'
less "no mode of the IOMMU" 'iommu_groups/./type' direct 'IOMMU: the mode of'
# 64 bytes of a config space, as without root
sed 's|^\(X .*/config [0-9a-f]\{0,8\}\).*|\1001000010000000406(12)40(11)|; s|^\(X [^ ]* \)\(....\)\(....\).*|\1\2\300001000(4)(40)40(11)|' \
	"$rec/guest-direct.rec" >less.rec
check_eq "without root: verdict" unknown "$(way)"
check "without root: it says so" sh -c "'$tool' topo --from less.rec | grep -q 'config spaces of 6 PCI functions cannot be read whole: needs root'"
check "without root: the tree is the same, by places" sh -c "'$tool' topo --from less.rec --tree | grep -c 'port?' | grep -qx 4"

status 0 topo --near nvme0n1 --from "$rec/guest-direct.rec"
said "^GPU0 0000:03:00.0: GPU0 to nvme0 0000:04:00.0: PIX, direct; it is the only GPU"
status 0 topo --near NVME0 --json --from "$rec/guest-direct.rec"
check "one object" jq -se 'length == 1 and .[0].gpu == "GPU0" and .[0].address == "0000:03:00.0"' out
status 66 topo --near nvme7 --from "$rec/guest-direct.rec"
said "nvme7: No such file"
touch f
status 66 topo --near f
said "f is on no NVMe drive of this machine"
status 66 topo --near / --from "$rec/guest-direct.rec"
said "/: Operation not supported"
status 64 topo --near x --tree
said "prints one GPU"
status 64 topo --near x --record r2

status 0 stats --fabric --from "$rec/guest-direct.rec"
said '^0000:02:01.0 downstream port'
said "^  peer-write  *[0-9]"
status 0 stats --fabric --json --from "$rec/guest-direct.rec"
check "fabric: three ports with ten counters" jq -e '.ports | length == 3 and all(.counters | length == 10)' out
status 3 stats --fabric --from r
said 'no port of a peerlane-switch'
status 3 stats --fabric --from less.rec
said 'counters cannot be read: this needs root'
status 64 stats --fabric --root x
said '--root does not work with'
status 64 stats --from r
said '--from needs'
sed 's/504c4e53/504c4e54/; s/534e4c50/534e4c51/; s/504c4e/504c4f/' "$rec/guest-direct.rec" >magic.rec
status 3 stats --fabric --from magic.rec
said 'no counters where'
finish
