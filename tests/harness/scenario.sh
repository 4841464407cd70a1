#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a scenario's bytes are counted right, and its expectations can fail
# tags: harness
# tier: check
# timeout: 60

# shellcheck disable=SC2030,SC2031 # what a subshell sets is for that alone
. "$TOP/scenarios/lib/case.sh"

need_tool jq cpio flock make
need_file "$BUILD/qemu/qemu-system-x86_64" "$BUILD/guest/7.2/base.cpio"

# --- where bytes of NVMe commands go -----------------------------------------

# shellcheck source=scenarios/lib/machine/vm.sh
. "$TOP/scenarios/lib/machine/vm.sh"
routes() { # RANGES BLOCKS
	nvme_route_bytes "$1" "$2" <trace
}

cat >trace <<'END'
pci_nvme_admin_cmd cid 1 sqid 0 opc 0x6 opname 'NVME_ADM_CMD_IDENTIFY'
pci_nvme_map_addr addr 0x1000 len 4096
pci_nvme_io_cmd cid 2 nsid 0x1 sqid 1 opc 0x2 opname 'NVME_NVM_CMD_READ'
pci_nvme_read cid 2 nsid 1 nlb 16 count 8192 lba 0x64
pci_nvme_map_addr addr 0xff00000000 len 4096
pci_nvme_map_addr addr 0xff00001000 len 4096
pci_nvme_io_cmd cid 3 nsid 0x1 sqid 1 opc 0x1 opname 'NVME_NVM_CMD_WRITE'
pci_nvme_write cid 3 WRITE nsid 1 nlb 8 count 4096 lba 0x6c
pci_nvme_map_addr addr 0xfeffffffff len 512
pci_nvme_map_addr addr 0xff3fffffff len 512
pci_nvme_map_addr addr 0xff40000000 len 512
pci_nvme_io_cmd cid 4 nsid 0x1 sqid 1 opc 0x1 opname 'NVME_NVM_CMD_WRITE'
pci_nvme_write cid 4 WRITE nsid 1 nlb 8 count 4096 lba 0x10
pci_nvme_map_addr addr 0x2000 len 4096
pci_nvme_io_cmd cid 5 nsid 0x1 sqid 1 opc 0x0 opname 'NVME_NVM_CMD_FLUSH'
pci_nvme_map_addr addr 0x3000 len 4096
END
bar=1095216660480:1073741824:gpu0
check_eq "each address goes to its range, each command to its kind" \
	'{"gpu0":{"data":{"read":8192,"write":512},"metadata":{"read":0,"write":0}},"host":{"data":{"read":0,"write":1024},"metadata":{"read":0,"write":4096}}}' \
	"$(routes $bar 100:20 | jq -c .)"
check_eq "without blocks everything is data" \
	'{"read":0,"write":5120}' "$(routes $bar '' | jq -c .host.data)"
check_eq "without ranges everything is host memory" \
	'{"read":8192,"write":5632}' "$(routes '' '' | jq -c .host.data)"
: >trace
check_eq "an empty trace is no bytes" '{"read":0,"write":0}' \
	"$(routes $bar '' | jq -c .host.data)"

# --- what guests report --------------------------------------------------------

printf '%s\r\n' 'ok 1 - no fact' '@transfer a {"x":1}' '@fact n 18446744073709551615' '@fact a.b {"c":[1.50]}' \
	'@fact a.d true' '@text a.t a "text" {' '@text a.t ' '@text a.t   of three lines' '@list a.l 3 0.120' '@list a.e ' \
	'@fact list.0 {"x":1}' '@text list.0.y 4K' '@text list.1.y 64K' '@fact sw0-x.bounce-direct 0' >facts
check_eq "keys of objects, elements of lists, texts of several lines, numbers as they are" \
	'{"n":18446744073709551615,"a":{"b":{"c":[1.50]},"d":true,"t":"a \"text\" {\n\n  of three lines","l":[3,0.120],"e":[]},"list":[{"x":1,"y":"4K"},{"y":"64K"}],"sw0-x":{"bounce-direct":0}}' \
	"$(facts_from facts)"
check_eq "nothing is reported" '{}' "$(facts_from /dev/null)"
for bad in '@fact a.b {"c":' '@fact a.b' '@fact a.b 1 2' '@list a.b 1 x'; do
	echo "$bad" >facts
	check_fails "no JSON: $bad" "${bad%% *} a.b: " facts_from facts
done
echo "@fact  5" >facts
check_fails "no key" "no key: @fact  5" facts_from facts

# --- expectations, on a result made by hand -----------------------------------

verdicts() { # SC_OWN: how many hold, how many fail, of the file expect
	(
		OUT=$PWD/sc
		SC_NAME=fixture
		VM_ACCOUNTING=$TOP/scenarios/lib/accounting
		mkdir -p "$OUT"
		cp expect "$OUT/conditions"
		# shellcheck source=scenarios/lib/scenario.sh
		. "$TOP/scenarios/lib/scenario.sh"
		SC_OWN=$1
		cp result "$OUT/measured.json"
		case_checks=0
		case_failed=0
		sc_expect >"$OUT/said"
		trap - EXIT
		echo "$((case_checks - case_failed)) $case_failed"
	)
}

echo '{"bytes":5,"transfers":[{"path":"bounce"}]}' >result
cat >expect <<'END'
# a comment

always | holds | .bytes == 5
always | does not hold | .bytes == 6
here | another path | [.transfers[].path] == ["p2p"]
END
check_eq "on its own machine: one holds, two do not" "1 2" "$(verdicts 1)"
check_eq "on another machine: one holds, one does not" "1 1" "$(verdicts '')"
echo 'always | no such key | .nothing.more == 1' >expect
check_eq "a key that is not there fails" "0 1" "$(verdicts 1)"
echo 'always | no expression | .bytes ==' >expect
check_eq "an expression with a mistake fails" "0 1" "$(verdicts 1)"
echo 'sometimes | what | .bytes == 5' >expect
check_eq "a line that cannot be read fails" "0 1" "$(verdicts 1)"
echo "here   | what | .bytes == 5" >expect
check_eq "so does one with other blanks" "0 1" "$(verdicts 1)"
check "… and it is said what a line is" grep -q "with one blank on each side of the two |" sc/said
echo 'always | nothing of the result | empty' >expect
check_eq "an expression without a value fails" "0 1" "$(verdicts 1)"

echo 'always | too little is asked | .transfers | length > 0 or .bytes == 7' >expect
check_eq "a condition that holds without what it names fails" "0 1" "$(verdicts 1)"
check "and says what it did not ask for" grep -q '^# it holds without any "bytes", too' sc/said

# --- a disk that fills while the files of a run are made ------------------------------------------------

need_file "$BUILD/scenarios/mkdata"
# Every program that makes an image writes what one writes to a full disk, and fails
mkdir full
for program in mke2fs mkfs.xfs dd cp; do
	printf '#!/bin/sh\necho "%s: No space left on device" >&2\nexit 1\n' $program >full/$program
	chmod +x full/$program
done
made() { # PATH COMMAND…: what a case prints that makes a file so; another program of that PATH comes first
	(
		OUT=$PWD/sc
		SC_SOURCE=$PWD/source
		SC_TOPOLOGY=same-switch
		MKDATA=$BUILD/scenarios/mkdata
		rm -rf source
		mkdir source
		. "$TOP/scenarios/lib/scenario.sh"
		vm_image() { :; }
		PATH=$1$PATH
		shift
		[ "$1" != full ] || { ln -s /dev/full source/data-65536; shift; }
		case_checks=0
		case_failed=0
		"$@"
		finish
	) >made 2>&1
	status=$?
	sed 's/mk[a-z0-9.]*:\|[a-z]*:/PROGRAM:/' made | xargs -d '\n' printf '%s|'
	echo $status
}
for fs in ext4 xfs raw; do
	check_eq "$fs: the failure says that the disk is full" \
		'not ok 1 - the disk image is made|# PROGRAM: No space left on device|1..1|1' "$(made "$PWD/full:" sc_disk $fs 65536 16777216)"
done
check_eq "the image for one run, too" \
	'not ok 1 - disk0.img is made|# PROGRAM: No space left on device|1..1|1' "$(made "$PWD/full:" sc_copy source sc/disk0.img)"
check_eq "and the data" \
	'not ok 1 - the data is made|# PROGRAM: No space left on device|1..1|1' "$(made '' full sc_disk raw 65536 16777216)"

# --- every scenario has its parts ---------------------------------------------

PROGRAM=scenario
# shellcheck source=scenarios/lib/options.sh
. "$TOP/scenarios/lib/options.sh"
for name in $(scenario_names); do
	title=$(scenario_says "$name" title)
	# its page is a document, or a section of one
	link=$(sed -n "s/^| \[\`$name\`\](\(.*\)) | .*/\1/p" "$TOP/scenarios/README.md")
	check "$name: the list of scenarios has it, and its page" test -n "$link" || continue
	check "$name: ... with its title" grep -qF "| [\`$name\`]($link) | $title |" \
		"$TOP/scenarios/README.md"
	case $link in
	*"#$name") awk -v name="$name" '/^## / { here = $0 == "## " name } here' "$TOP/scenarios/${link%#*}" ;;
	*) cat "$TOP/scenarios/$link" ;;
	esac >page.md
	check "$name: its title is that of its page" grep -qxF -e "# $title" -e "**$title**" page.md
	for part in 'What happens' 'What to look at' 'Exercise'; do
		check "$name: its page has: $part" grep -qE "^##+ $part" page.md
	done
	check "$name: its machine is there" topology_known "$(scenario_says "$name" machine)"
	check "$name: it says when it runs, and how long" sh -c '
		echo "$1" | grep -qxE "check|all|nightly" && test "$2" -gt 0' sh \
		"$(scenario_says "$name" tier)" "$(scenario_says "$name" timeout)"
	check_eq "$name: its guest has one script" 1 "$({ grep -E '^(guest|copy) ' "$(scenario_file "$name")"
		ls "$TOP/scenarios/$name/guest" 2>/dev/null; } | wc -l)"
	check "$name: in its file there are no more than 80 lines of it" test 80 -ge \
		"$(sed -n "/^guest <</,/^END$/p" "$(scenario_file "$name")" | sed '1d;$d' | wc -l)"
done
for folder in "$TOP"/scenarios/*/guest; do
	folder=${folder%/guest}
	case ${folder##*/} in
	lib) continue ;;
	esac
	check "${folder##*/}/guest is that of a scenario" test -f "$folder.scn"
done
check_eq "the list names them all" "$(scenario_names | wc -l)" "$("$TOP/scenarios/run" -l | wc -l)"
check_fails "an option that does not exist is an error" "unknown option -q" "$TOP/scenarios/run" -q
check_fails "no name is an error" "usage: scenarios/run NAME|which scenario" "$TOP/scenarios/run"
finish
