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
drive() { # NAME: what is on standard input, behind the line of a case, as a drive of whole sectors
	{ printf '%-511s\n' "case 1700000000 boot" && cat; } >"case/$1"
	truncate -s "$((($(wc -c <"case/$1") + 511) / 512 * 512))" "case/$1"
}
got=tmp/got
pack $got/big $got/first $got/second $got/link $got/folder $got/old >whole
drive good <whole
printf '%-511s\n' "hello" >case/other
head -c 4096 /dev/zero | drive empty
head -c 100000 whole | drive cut
truncate -s 50176 case/cut
pack $got/pipe | drive fifo
pack $got/old | sed 's/^\(070701.\{88\}\)......../\1FFFFFFFF/' | drive name

cat >case/run <<'EOF2'
#!/bin/sh
# On tmpfs, which can be read as a drive is
mkdir /tmp/got
echo "an old file, which is longer" >/tmp/got/old
take() { # NAME
	cp "/case/$1" /tmp/drive
	take-case /tmp/drive >/tmp/said 2>&1
	echo "$1: $? $(cat /tmp/said)"
}
take good
cd /tmp/got
echo "big $(wc -c <big) $(tr -d x <big | wc -c) $(stat -c %Y big)"
echo "first $(cat first) $(stat -c %h first) $(test first -ef second && echo same)"
echo "link $(readlink link)"
echo "folder $(stat -c %F folder)"
echo "old $(cat old) $(stat -c %a old)"
for drive in other empty cut fifo name; do
	take $drive
done
take-case /tmp/none >/tmp/said 2>&1
echo "none: $? $(cat /tmp/said)"
EOF2
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
check_eq "another first line" "1 init: the drive with the case begins with something else: hello" \
	"$(said other: | sed 's/ *$//')"
check_eq "no archive" "1 init: the case is no cpio archive of the new format" "$(said empty:)"
check_eq "half an archive" "1 init: the drive ends in the middle of the case: no trailer" "$(said cut:)"
check_eq "what is no file" "1 init: $got/pipe: neither file, folder nor symbolic link" "$(said fifo:)"
check_eq "a name without end" "1 init: the case has a name of 4294967295 bytes" "$(said name:)"
check_eq "no drive" "1 init: /tmp/none: No such file or directory" "$(said none:)"
finish
