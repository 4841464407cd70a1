#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: guests start from a snapshot of their machine: one for each machine, and each guest is another
# tags: harness guest
# tier: all
# timeout: 240

. "$TOP/scenarios/lib/case.sh"
. "$TOP/scenarios/lib/machine/vm.sh"

need_file "$QEMU" "$BUILD/guest/7.2/base.cpio" "$BUILD/guest/7.2/tests.cpio"
# Snapshots of this case only, so that the first guest makes one
PEERLANE_CACHE=$OUT/cache
PEERLANE_SNAPSHOT=1
cat >one.topo <<'EOF'
machine q35 - memory=256M cpus=1
rp0 root-port pcie.0
nvme0 nvme rp0 image=disk0
EOF
mkdir case
cp "$TOP/tests/harness/guest/snapshot" case/run
chmod +x case/run
echo nvme >case/modules
# A link's file is in the case; pln_p2p is another one than pln_p2pabi
echo "runs pln_p2p, pln_basic with peerlane_dmabuf_test, and no pln_mappings" >names
ln -s ../names case/names

said() { # NAME WORD
	sed -n "s/^$2 //p" "$1/result.log"
}
snapshots() {
	find "$OUT/cache/vm" -mindepth 1 -maxdepth 1 -type d 2>/dev/null | wc -l
}
# What stands before the case that guest NAME is brought: its third word is for random numbers, see take-case.c
host_line() { # NAME
	head -n 1 "$OUT/$1/case.img" | cut -d " " -f 3 >"$OUT/$1.random"
}
guest() { # NAME
	truncate -s 1M "$1.img"
	printf '%-5s' "$1" | dd of="$1.img" conv=notrunc status=none
	vm_images=
	vm_image disk0 "$OUT/$1.img"
	date +%s >"$1.before"
	vm_run "$1" "$OUT/one.topo" 7.2 "$OUT/case" 100 2>"$1.err"
	check_eq "guest $1 ends well" 0 $?
}

# What was killed while it made one
mkdir -p "$OUT/cache/vm/0123456789abcdef.partial.1"
guest one
check "the first one makes a snapshot" grep -q 'saves a snapshot' one.err
check_eq "it is kept, and what another left is removed" 1 "$(snapshots)"
first=$(ls "$OUT/cache/vm")
guest two
check_false "the second one finds it" grep -q 'saves a snapshot' two.err
check_eq "no other was made" 1 "$(snapshots)"
for name in one two; do
	check_eq "$name: its own drive" "$name" "$(said $name drive | tr -d ' ')"
	check_eq "$name: the programs of tests that its case names" "pln_basic pln_p2p" "$(said $name programs)"
	check_eq "$name: and the modules" peerlane_dmabuf_test.ko "$(said $name modules)"
	check_eq "$name: a module of Linux that its case does not name is there from before" 1 "$(said $name loaded)"
	check_eq "$name: its memory is as that of the snapshot" "" "$(said $name left)"
	check_eq "$name: no disk but the drive" 0 "$(said $name disks)"
	check_eq "$name: nothing is left of the device that brought the case" 0 "$(said $name virtio)"
	check "$name: the clock is the host's" test "$(said $name clock)" -ge "$(cat $name.before)"
	check "$name: the console has what the kernel said when it booted" grep -q 'Linux version' $name/console.log
	check "$name: it is brought a random number, for its kernel" grep -qxE "[0-9a-f]{64}" $name.random
done
check_false "each another one" cmp -s one.random two.random

# The other guests are of that one: a boot takes long
export VM_SNAPSHOTS_MIB=1
VM_CMDLINE=word=other
guest three
check "another command line: another snapshot" grep -q 'saves a snapshot' three.err
check_eq "which has it" word=other "$(said three word)"
check_eq "no room for two: the one that was used longest ago is removed" 1 "$(snapshots)"
check "which was the first" test ! -e "$OUT/cache/vm/$first"
unset VM_SNAPSHOTS_MIB

# The memory of a guest as a file, which has what the guest writes
host_search() {
	grep -c -a 'host_sea''rch_what_the_guest_wrote' "$OUT/$1/ram"
}
cat >case/run <<'EOF'
#!/bin/sh
text=host_search
text=${text}_what_the_guest_wrote
i=0
while [ $i -lt 100 ]; do
	i=$((i + 1)); echo "$text"
done >/tmp/text
echo "found $(host search)"
EOF
VM_RAM_FILE=1
guest four
check "VM_RAM_FILE: what the guest has written is in the file" test "$(said four found)" -ge 1
VM_RAM_FILE=
check_eq "of the same snapshot" 1 "$(snapshots)"
cat >case/run <<'EOF'
#!/bin/sh
echo "found $(grep -c what_the_guest_wrote /tmp/text 2>/dev/null)"
EOF
guest five
check_eq "in which nothing of it is left" "" "$(said five found)"

# A snapshot that cannot be made: what is wrong, and what to do
echo "machine q35 - memory=256M cpus=1" >bad.topo
vm_images=
vm_start bad "$OUT/bad.topo" 7.2 "$OUT/case" -device no-such-device 2>bad.err
check_eq "a machine that QEMU refuses does not start" 2 $?
check "QEMU's reason is printed" grep -q "snapshot: QEMU:.*no-such-device" bad.err
check "and what to do" grep -q 'PEERLANE_SNAPSHOT=0' bad.err
check_eq "nothing is kept of it" 1 "$(snapshots)"

# A kernel that dies before its init runs
VM_CMDLINE=rdinit=/none
vm_start dead "$OUT/bad.topo" 7.2 "$OUT/case" 2>dead.err
check_eq "a machine that dies while it boots does not start" 2 $?
check "what its kernel says is the reason" grep -q "snapshot: the machine ended before it was ready: .*Kernel panic" dead.err
# not where the runner would look for complaints
mv dead/console.log dead.txt
check "and its whole console is kept" grep -q "Linux version" dead.txt
VM_CMDLINE=word=other

# A snapshot that cannot be loaded
for state in "$OUT"/cache/vm/*/state; do
	truncate -s 1000 "$state"
done
truncate -s 1M broken.img
vm_images=
vm_image disk0 "$OUT/broken.img"
vm_start broken "$OUT/one.topo" 7.2 "$OUT/case" 2>broken.err
check_eq "a snapshot that cannot be loaded: the guest does not start" 2 $?
check "it is named" grep -q "the snapshot $OUT/cache/vm/[0-9a-f]* cannot be loaded" broken.err

# A guest may have ended before QEMU is asked whether its snapshot is loaded
mkdir "$OUT/short"
mkfifo "$OUT/short/qmp.in" "$OUT/short/qmp.out"
echo 1 >"$OUT/short/qemu.rc"
vm_name=short
vm_dir=$OUT/short
check "a guest that has ended was loaded" vm_loaded

# The same by a boot, of which build/boot has one by day
if [ "$TIER" = nightly ]; then
	PEERLANE_SNAPSHOT=0
	cat >case/run <<'EOF'
#!/bin/sh
echo "booted $(cut -d . -f 1 /proc/uptime)"
EOF
	guest boot
	check_eq "PEERLANE_SNAPSHOT=0: without a snapshot" 1 "$(snapshots)"
	check "the guest has booted" grep -q '^booted' boot/result.log
fi
rm -rf "$OUT/cache"
finish
