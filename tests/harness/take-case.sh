#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a guest unpacks its case as it was packed, and says what is wrong with one that is damaged
# tags: guest harness
# tier: all
# timeout: 120

. "$TOP/scenarios/lib/case.sh"
. "$TOP/scenarios/lib/machine/vm.sh"

need_file "$QEMU" "$BUILD/guest/7.2/base.cpio"
need_tool cpio
echo "machine q35 - memory=256M cpus=1" >one.topo

# What is packed: names that share a file, a link, a folder, one entry without its folder's
mkdir -p tree/tmp/got/folder case
(
	cd tree/tmp/got || exit
	head -c 300000 /dev/zero | tr '\0' x >big
	printf 'a name more' >first
	ln first second
	ln -s big link
	echo new >old
	chmod 640 old
	touch -d @1600000000 big
	mkfifo pipe
) || exit 1
pack() { # NAME…: those as an archive
	(cd tree && printf '%s\n' "$@" | cpio --quiet -o -H newc)
}
device() { # NAME [SIZE [RANDOM]]: the folder of a device with the archive on standard input; what its line says
	mkdir "case/$1"
	cat >"$1.archive"
	{
		printf '%-511s\n' "case 1700000000 ${3-$(printf '%064d' 7)} ${2:-$(wc -c <"$1.archive")}"
		cat "$1.archive"
	} >"case/$1/resource2"
	head -c 64 /dev/zero | tr '\0' x >"case/$1/config"
	: >"case/$1/remove"
}
got=tmp/got
pack $got/big $got/first $got/second $got/link $got/folder $got/old >whole
device good <whole
device kept <whole
rm case/kept/remove
device room 1000000000 <whole
device random '' "$(printf '%064d' 7 | tr 0 x)" <whole
head -c 4096 /dev/zero | device empty
head -c 50000 whole | device cut
pack $got/pipe | device fifo
pack $got/old | sed 's/^\(070701.\{88\}\)......../\1FFFFFFFF/' | device name
for each in other waiting small; do
	device $each <whole
done
printf '%-511s\n' hello >case/other/resource2
printf '%-511s\n' wait >case/waiting/resource2
echo short >case/small/resource2

cp "$TOP/tests/harness/guest/take-case" case/run
chmod +x case/run
: >case/modules

vm_run guest "$OUT/one.topo" 7.2 "$OUT/case" 100
check_eq "the guest ends well" 0 $?
said() { # WORD
	tr -d '\r' <guest/result.log | sed -n "s/^$1 //p"
}
check_eq "a whole case is taken" 0 "$(said good: | tr -d ' ')"
check_eq "a large file, with its time" "300000 0 1600000000" "$(said big)"
check_eq "two names of a file" "a name more 2 same" "$(said first)"
check_eq "a symbolic link" big "$(said link)"
check_eq "a folder" directory "$(said folder)"
check_eq "a file is replaced, with its mode" "new 640" "$(said old)"
check_eq "another first line" "1 init: the case begins with something else: hello" \
	"$(said other: | sed 's/ *$//')"
check_eq "no archive" "1 init: the case is no cpio archive of the new format" "$(said empty:)"
check_eq "half an archive" "1 init: the case ends in the middle: no trailer" "$(said cut:)"
check_eq "what is no file" "1 init: $got/pipe: neither file, folder nor symbolic link" "$(said fifo:)"
check_eq "a name without end" "1 init: the case has a name of 4294967295 bytes" "$(said name:)"
check_eq "more than there is room for" \
	"1 init: the case has 1000000000 bytes, and there is room for $(wc -c <whole)" "$(said room:)"
check_eq "no random number" "1 init: the case has no random number: $(printf '%064d' 7 | tr 0 x)" "$(said random:)"
check_eq "the kernel gets the random number, and takes it at once" "RNDADDENTROPY RNDRESEEDCRNG" "$(said seeds)"
check_eq "all of it" "$(printf '%064d' 7)" "$(said bytes)"
check_eq "a memory that is too small for a line" "1 init: /tmp/device/resource2: too small" "$(said small:)"
check_eq "no device" "1 init: /tmp/device: No such file or directory" "$(said none:)"
check_eq "wrong usage" "1 init: usage: take-case [-w] DEVICE [COMMAND...]" "$(said usage:)"
check_eq "the device decodes no addresses any more" "xxxx00$(head -c 58 /dev/zero | tr '\0' x)" "$(said decodes)"
check_eq "and is removed" 1 "$(said removed)"
check_eq "one that cannot be removed" "1 init: the device with the case cannot be removed: No such file or directory" "$(said kept:)"
check_eq "it goes on as a command" "goes on as name word, CASE_FAILED unset" "$(said then-good)"
check_eq "which hears of a failure" "goes on as name word, CASE_FAILED 1" "$(said then-cut)"
check_eq "asked, it says that a machine is to be saved" 0 "$(said asked-waiting)"
check_eq "and that there is a case" 1 "$(said asked-good)"
finish
