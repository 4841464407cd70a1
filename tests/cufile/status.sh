#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: exit statuses of all commands of peerlane: one list, documented, and each is seen
# tags: cufile
# tier: check
# timeout: 120
set -u
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/cufile/lib.sh"
page=$BUILD/userlib/man/peerlane.1
static=$BUILD/userlib/peerlane.static
need_file "$page" "$static"

# one list: of the program, of --help, of the manual page
sed -n '/^enum {/,/^}/s/^	EXIT_[A-Z_]* = \([0-9]*\),.*/\1/p' "$TOP/userlib/core/exit_status.h" | sort -nu | xargs >program
sed -n '/^\.SH EXIT STATUS/,/^\.SH SEE/p' "$page" | sed -n '/^\.TP$/{n;s/^\.BR\{0,1\} //p}' | tr -dc '0-9\n ' | xargs -n 1 | sort -n | xargs >documented
check_eq "the manual page has each status of the program once" "$(cat program)" "$(cat documented)"
"$tool" --help | sed -n '/Exit status/,$p' | tr '\n' ' ' | grep -oE '(^|[ ,])[0-9]+ [a-z]' | grep -oE '[0-9]+' | sort -nu | xargs >helped
check_eq "--help, too" "$(cat program)" "$(cat helped)"

printf 123456789 >nine
seq 1000 >damaged
"$tool" --describe | jq -r '.[].name' >commands
check "there are commands" test "$(wc -l <commands)" -ge 7

# of every command: help is success, a mistake is 64, and what cannot be written is 73
while read -r command; do
	status 0 "$command" --help
	status 0 help "$command"
	status 64 "$command" --no-such-option
	"$tool" help "$command" >/dev/full 2>err
	check_eq "status 73: peerlane help $command >/dev/full" 73 $?
	"$tool" help "$command" >&- 2>err
	check_eq "status 73: peerlane help $command, without an output" 73 $?
done <commands
check "… and why is said" grep -q 'peerlane: the output cannot be written: ' err
"$tool" io crc --file nine --json >/dev/full 2>err
check_eq "status 73: a result that cannot be written" 73 $?
"$static" doctor --list >/dev/full 2>err
check_eq "status 73: the program in one file" 73 $?
"$tool" io read --file nine --json >/dev/full 2>err
check_eq "what went wrong before has its own status" 3 $?

# each number means the same in each command that has it
echo '{"properties":{"allow_compat_mode":"no"}}' >bad.json
status 1 io crc --file none
status 1 copy none there
status 3 io read --file nine
status 3 io load --file nine
status 3 copy nine there
status 3 stats --root none
[ -e /sys/class/infiniband ] || status 3 perf --loopback
CUFILE_ENV_PATH_JSON=$PWD/bad.json gpu 3 io load --file nine
CUFILE_ENV_PATH_JSON=$PWD/bad.json gpu 3 copy nine there
MOCK_P2P_ERRNO=121 gpu 4 io read --file nine --strict
MOCK_P2P_ERRNO=121 gpu 4 io load --file nine --strict
gpu 4 copy --strict nine there
dd if=/dev/urandom of=data bs=4096 count=4 2>/dev/null
FAULT_FLIP=1 faulty 5 io read --file data --verify
FAULT_FLIP=1 faulty 5 io load --file data --verify
FAULT_FLIP=1 faulty 5 copy data there
# without an output, a file that is opened does not take its place
status 0 io load -f data -x cpu -s 16K -i 4K -k 5 -I 1
cp data written
for close in "1>&-" "0<&- 1>&-" "0<&- 1>&- 2>&-"; do
	dd if=/dev/zero of=data bs=4096 count=4 2>/dev/null
	eval "\"\$tool\" io load -f data -x cpu -s 16K -i 4K -k 5 -I 1 2>err $close"
	check_eq "status 73: io load, $close" 73 $?
	check "… and the file has what was asked for, and no word of a result" cmp data written
done
status 64 fly
status 65 topo --from damaged
status 65 doctor --from damaged
status 65 stats --fabric --from damaged
status 66 topo --from none
status 66 doctor --from none
status 66 stats --fabric --from none
status 66 stats 2147483647
status 73 doctor --record none/record
status 73 stats --all --prometheus none/metrics
status 126 run /etc/passwd
status 127 run ./no-such-program
status 7 run sh -c 'exit 7'
finish
