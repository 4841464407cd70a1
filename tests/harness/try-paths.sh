#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: scenarios/try says which paths a program's data took, on each machine, and fails where that is not what was expected
# tags: guest harness
# tier: all
# timeout: 240
. "$TOP/scenarios/lib/case.sh"
need_tool cc jq xmllint
need_file "$BUILD/guest/7.2/vmlinux" "$BUILD/userlib/peerlane"
try=$TOP/scenarios/try

# What is wrong with a command line is said before anything boots
check_fails "a condition that is no jq" 'scenarios/try: --expect .bytes ==: .*syntax error' "$try" --expect '.bytes ==' true
check_fails "a condition of two lines" 'a condition is one line' "$try" --expect '.bytes
== 0' true
check_fails "a result where none can be" 'cannot write /nowhere/result.json' "$try" --json /nowhere/result.json true
check_fails "a page where none can be" 'cannot write /nowhere/page.html' "$try" --report /nowhere/page.html true

# A program and a library of the user's that it is linked with; another that is nowhere
mkdir lib
echo 'int mine(void) { return 42; }' >mine.c
echo 'int gone(void) { return 0; }' >gone.c
echo 'int mine(void); int main(void) { return mine() != 42; }' >uses.c
echo 'int gone(void); int main(void) { return gone(); }' >lacks.c
cc -shared -fPIC -o lib/libmine.so mine.c && cc -shared -fPIC -o libgone.so gone.c &&
	cc -o uses uses.c -Llib -lmine "-Wl,-rpath,$OUT/lib" && cc -o lacks lacks.c -L. -lgone && rm libgone.so
check "programs are built" test -x uses -a -x lacks
head -c 1048576 /dev/urandom >data.bin

# One call, two machines: on one the drive reaches the GPU, on the other it does not
"$try" --topology same-switch --topology two-root-ports --add uses --add lacks --add data.bin --disk 64M --timeout 60 --direct \
	--expect '.bytes == 1048576' --json result.json --report page.html --keep 'uses && peerlane io read --file data.bin --gpu 0 --size 1M && printf x' >out 2>err
check_eq "--direct was not met: the status" 1 $?
check "output that ends without a newline" grep -qx x out
check_eq "… on one machine of the two" "two-root-ports: .direct == true" "$(sed -n 's/.*: not met on \(.*\) (.*/\1/p' err)"
check "what a program needs is named where nobody has it" grep -q 'lacks needs libgone.so, which neither' err
check_eq "the table says which path, how many bytes, how many of them through host memory" \
	"same-switch p2p 1048576 0 two-root-ports bounce 1048576 1048576" \
	"$(awk '$2 == "peerlane" && $3 == "read" { print $1, $4, $5, $6 }' out | xargs)"
check "… and why" grep -q '^two-root-ports .* p2p refused: ' out
check "the JSON has the same" jq -e '.status == 1 and .met == false and .expect == [".bytes == 1048576", ".direct == true"]
	and (.machines | map([.topology, .status, .direct, .bytes, .host_bytes, .transfers[0].path]))
	== [["same-switch", 0, true, 1048576, 0, "p2p"], ["two-root-ports", 0, false, 1048576, 1048576, "bounce"]]' result.json
check "and what the GPUs counted: there the bytes came in by the aperture, here the engine fetched them" \
	jq -e '(.machines | map(.counted.gpu0 | [.["bar1-dma-write"], .["engine-host-read"] >= 1048576])) == [[1048576, false], [0, true]]' result.json

# A trace grows with the IO: only a drive whose link no port counts has one
kept=$(sed -n 's/^kept: //p' out)
check "below a switch that counts no command is traced" test -e "$kept/1/guest/trace.log" -a ! -s "$kept/1/guest/trace.log"
check "below a root port they are" grep -q pci_nvme_map_addr "$kept/2/guest/trace.log"
rm -rf "$kept"

# The page of this call
has() { grep -qF -- "$1" "${2:-page.html}"; }
check "the page can be read" xmllint --noout page.html
check "… it begins with what came of it" has '<strong>2 runs: 1 pass, 1 fail.</strong>'
check "… says what was not met" has '<p>Not met: .direct == true</p>'
check "… why, and what to do" grep -q 'peerlane read: <b>bounce</b>, <b>1.0 MiB</b> through host memory, because p2p refused: .* <b>What to do:</b> put drive and GPU below one switch' page.html
check "… draws both, side by side" has '<h2>The same transfers, direct and staged</h2>'
check "… with what the links carried: turned round in the switch" has '<title>nvme0: 1.0 MiB between devices, turned round in a switch</title>'
check "… and to host memory" has '<title>rp1: 1.0 MiB from or to host memory</title>'
check "… and no time per GiB, which nobody has measured" grep -q '<td>peerlane read</td><td>p2p</td><td class="n">0 B</td><td class="pass">pass</td><td class="n">1.0 MiB</td><td class="n"></td>' page.html

# … and of two hosts
# shellcheck disable=SC2016 # of the guests
"$try" --hosts 2 --timeout 60 --report hosts.html --add data.bin 'host barrier "go" >/dev/null
	[ $HOST = a ] || { ping -c 1 -W 10 10.0.0.1 >/dev/null && peerlane io read --file data.bin --gpu 0 --size 1M; }' >out 2>err
check_eq "two hosts: the status" 0 $? || diag "$(cat out err)"
check "their page can be read" xmllint --noout hosts.html
# shellcheck disable=SC2016 # of the page
check "… has the command as it was written, in one line" has 'host barrier &quot;go&quot; &gt;/dev/null  [ $HOST = a ] ||' hosts.html
check "… draws each" has '<h3>Host b</h3>' hosts.html
check "… and the wire" grep -qE 'host b sent [1-9][0-9]* frames' hosts.html
check "… and names the transfer" has '<td>b: peerlane read</td>' hosts.html

# A program of which nothing is known has not gone directly; its own status comes first
"$try" --disk 64M --timeout 60 --direct --expect '.host_bytes == 0' --report words.html printf '%s\n' "it's" a=b '' 'x' >out 2>err
check_eq "no transfer at all: the status" 1 $?
check_eq "several words reach the program as they are" "it's a=b x" "$(sed -n '1,4p' out | xargs -d '\n' | tr -s ' ')"
check "… and have quotes on the page where a shell needs them" has "printf '%s\\n' 'it'\\''s' a=b '' x<" words.html
check_eq "… neither condition is met" 2 "$(grep -c ': not met on same-switch: ' err)"
"$try" --disk 64M --timeout 60 --direct --keep --add data.bin 'exit 7' >out 2>err
check_eq "the status is the command's where that is not 0" 7 $?
kept=$(sed -n 's/^kept: //p' out)
check "--keep keeps drive and files" test -s "$kept/disk0" -a -s "$kept/case/files/data.bin"
rm -rf "$kept"

# A library that calls direct what it has moved through host memory: the GPU has counted nothing. And a program that a signal ends
# has reported nothing: the GPU has counted it
cat >liar.c <<'END'
#include <peerlane/file.h>
int pln_file_stats(void *handle, struct pln_file_stats *stats)
{
	(void)handle;
	stats->path[PLN_PATH_P2P].bytes_read = 1048576;
	stats->errors = 3;
	return 0;
}
const char *pln_path_name(unsigned int path)
{
	return path == PLN_PATH_P2P ? "p2p" : "none";
}
END
mkdir liar
cc -shared -fPIC -o liar/libcufile.so.0 -Wl,-soname,libcufile.so.0 liar.c -I"$TOP/userlib/include" &&
	echo "int main(void) { return 0; }" >lie.c && cc -o liar/lie lie.c -Wl,--no-as-needed -Lliar -l:libcufile.so.0
check "the liar is built" test -x liar/lie
"$try" --disk 64M --timeout 60 --expect '.host_bytes == 0' --add liar --json lie.json 'LD_LIBRARY_PATH=/mnt/liar liar/lie' >out 2>err
check_eq "a false p2p does not meet .host_bytes == 0" 1 $?
check "… the table says why, and what failed" grep -q ' 3 failed: the library says p2p, but the GPUs counted only 0 bytes$' out
check "… and the JSON says why" jq -e '.machines[0] | .host_bytes == 1048576 and .transfers[0].path == "p2p" and (.transfers[0].reason | test("counted only 0 bytes"))' lie.json
echo '#include <signal.h>
static void __attribute__((destructor)) leave(void) { raise(SIGKILL); }' >killed.c
cc -D_GNU_SOURCE -o killed "$TOP/userlib/examples/cufile-read.c" killed.c -I"$TOP/userlib/include" -I"$TOP/userlib/cufile" -I"$TOP/userlib/cuda" \
	-L"$BUILD/userlib" -l:libcufile.so.0 -l:libcuda.so.1
"$try" --disk 64M --timeout 60 --add killed --add data.bin --json killed.json killed data.bin >out 2>err
check_eq "a signal ended it" 137 $?
check "its row is what the GPU counted" grep -q '^same-switch .*gpu0 in  *p2p  *1048576  *0  counted by the device' out
check "… also in the JSON" jq -e '.machines[0] | .bytes >= 1048576 and .transfers[0].program == "gpu0" and .direct == false' killed.json
finish
