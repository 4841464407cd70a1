#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a command of the user's own runs in the emulated machine, with its files and its status
# tags: guest harness
# tier: check
# timeout: 120
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/build/lib.sh"
need_tool cc
need_file "$BUILD/guest/7.2/vmlinux" "$BUILD/userlib/peerlane"
try=$TOP/scenarios/try

# Refusals come before anything boots
refused() { # WORDS ARG...
	words=$1
	shift
	"$try" "$@" > refused.out 2>&1
	[ $? -eq 64 ] && grep -q "$words" refused.out
}
check "no command: usage" refused '^usage: scenarios/try'
check "an unknown option" refused 'unknown option --nonsense' --nonsense true
check "an option without its value" refused '.--add needs a value' --add
check "a file that is not there" refused 'there is no ./missing' --add ./missing true
check "an unknown topology" refused 'no topology is called .no-such. .there are:.* same-switch' --topology no-such true
check "an unknown kernel" refused 'no guest with kernel .2.4. .there are: 7.2 6.12' --kernel 2.4 true
check "a time that is none" refused 'not a number of seconds' --timeout soon true
check "a size that is none" refused 'is not a size' --disk big true
for n in 0 9 two 12; do
	check "$n hosts" refused "hosts $n is not a number from 1 to 8" --hosts "$n" true
done
check "a folder that holds what is made of it" refused 'holds .*/build/out/try.*, where it would be copied to' --add "$TOP" true
mkdir huge
truncate -s 1100M huge/data
more='MiB with it, and the limit is 1000 MiB; add a part of it .*, or compress it and unpack it in the machine .*, or create it there .*: --disk'
check "more than the machine takes, and what to do" refused "huge: all added files have 11[0-9]* $more" --add huge true
truncate -s 600M half other-half
check "... in several files" refused "other-half: all added files have 1200 $more" --add half --add other-half true
# the head of one for arm64, as a line for the shell and as words
printf "\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\2\0\267\0" >arm64-program
check "a program for another processor" refused "arm64-program is for another processor .ELF machine 183.: machines run programs for x86-64" \
	--add arm64-program "./arm64-program data.bin"
check "... of several words" refused "arm64-program is for another processor" --add arm64-program ./arm64-program data.bin
check "--help" "$try" --help
mkdir build
BUILD=$OUT/build "$try" --help >help.out
BUILD=$OUT/build "$try" --nonsense true 2>help.out
check_eq "neither makes or removes the folder of a run" "" "$(ls build)"

mkdir "a folder"
head -c 1048576 /dev/urandom > "a folder/data"
sum=$(sha256sum < "a folder/data")
"$try" --topology two-gpus --add "a folder" --disk 256M --timeout 60 'sha256sum < "a folder/data"
peerlane io read --file "a folder/data" --gpu 0 --size 1M --json
exit 7' > try.out 2> try.err
check_eq "the status is the command's" 7 $?
check "the files are there, whole" grep -qxF "$sum" try.out
check_eq "each GPU counted what the drive wrote to it" "gpu0 1048576 gpu1 0" \
	"$(sed -n 's/^\(gpu[01]\) counted: .* its memory \([0-9]*\) bytes, from it 0;.*/\1 \2/p' try.out | xargs)"
check_false "nothing of the machine's talk is shown" grep -q '^@' try.out

# Two at once, of one checkout; the second has a fault of its own
printf 'int main(void) { *(volatile int *)8 = 1; }\n' >fault.c
check "a program that has a fault" cc -static -o fault fault.c
pids=
for n in 1 2; do
	echo "number $n" >file
	"$try" --add file --add fault --disk 64M --timeout 60 "cat file; [ $n = 1 ] || exec ./fault; exit 1" >"try.$n.out" 2>"try.$n.err" &
	pids="$pids $!"
	# the file is copied before the next one replaces it
	wait_for 20 sh -c "grep -qx 'number $n' \"\$BUILD\"/out/try.*/case/files/file"
done
n=0
set -- 1 139
for pid in $pids; do
	n=$((n + 1))
	wait "$pid"
	check_eq "two at once: the status of number $n" "$1" $?
	shift
	check "each has its own files ($n)" grep -qx "number $n" "try.$n.out"
	check "one GPU needs no number ($n)" grep -q '^the GPU counted: by other devices to its memory' "try.$n.out"
done
"$try" --timeout 5 'sleep 60' >time.out 2>time.err
check_eq "the time was over: the status" 124 $?
check "… how to get more" grep -q 'the machine reached the time limit of 5 s; set another limit with --timeout SECONDS' time.err
check "… and where the console is" grep -q 'no end within 5 seconds; its console (.*/guest/console.log)' time.err
finish
