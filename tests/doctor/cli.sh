#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peerlane doctor: options, output, exit statuses, bad input; reads only
# tags: doctor
# tier: check
# timeout: 120

. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/doctor/lib.sh"

said() { check "says: $1" grep -q -e "$1" out err; }
record "$base" >healthy.rec
cat >staged.patch <<'END'
C 0000:02:01.0 10b5:8747 downstream 005f 001d
END
record "$base" staged.patch >staged.rec

# ---- usage ----
doctor 0 --help
said 'usage: peerlane doctor'
doctor 64 --no-such-option
doctor 64 --from
doctor 64 --from healthy.rec /data/x 0 extra
said 'not "extra" too'
doctor 64 --from healthy.rec --gpu 0 /data/x 0
said 'two GPUs are given'
doctor 64 --from healthy.rec --record new.rec
said 'records this machine'
check_false "… and wrote nothing" test -e new.rec
doctor 66 --from no-such.rec
said 'no-such.rec'
sed 's/^F .*kallsyms.*/F nonsense/' healthy.rec >bad.rec
doctor 65 --from bad.rec
said 'bad.rec: line [0-9]*:'
for gpu in 1 -1 x GPU1 0000:04:00.0 99999999999999999999; do
	doctor 64 --from healthy.rec --gpu "$gpu"
	said "there is no GPU $gpu: the record has 1"
done
for gpu in 0 GPU0 gpu0 0000:03:00.0 03:00.0; do
	doctor 0 --from healthy.rec --gpu "$gpu"
done
doctor 64 --from healthy.rec relative/file 0
said 'only whole paths'
doctor 66 --from healthy.rec /dev/nvme7n1 0
said 'no mount of the record holds it'
doctor 66 no-such-file
said 'no-such-file: No such file'
doctor 64 /dev/null
said 'neither a file'
doctor 73 --record /no/such/folder/rec
said 'cannot be written'
doctor 64 --list /data/x
said 'takes no path, GPU, record, output or --try'
doctor 64 --explain no-such-finding
said 'no finding is called "no-such-finding"'
doctor 0 --explain acs-redirect
said 'disable_acs_redir='
doctor 0 --list
said 'acs-redirect  *error'

# ---- output ----
doctor 0 --from healthy.rec
check_eq "healthy: one line" \
	"healthy: 0 errors, 0 warnings, 0 remarks" "$(cat out)"
doctor 2 --from staged.rec
check_eq "broken: the summary is the first line" \
	"broken: 1 error, 0 warnings, 0 remarks" "$(head -n 1 out)"
said '^error: acs-redirect$'
check "no line is wider than a terminal" awk 'length($0) > 80 { exit 1 }' out
check_false "sections only with -v" grep -q '^environment$' out
doctor 2 --from staged.rec -v
said '^environment$'
doctor 2 --from staged.rec --json
json "all sections are there" '(.sections | keys | length) == 14'
json "the bridge is named" '.findings[0].where == ["0000:02:01.0"]'
json "the cure has a kernel parameter and a command" '.findings[0].cure |
	test("pci=disable_acs_redir=pci:10b5:8747") and
	test("disable_acs_redir=0000:02:01.0") and
	test("pci=config_acs=x0x00xx@pci:10b5:8747") and
	test("setpci -s 0000:02:01.0 ECAP_ACS\\+6.w=0:2c")'
record "$base" staged.patch - >old.rec <<'END'
F /proc/sys/kernel/osrelease 6.8.0\n
END
doctor 2 --from old.rec --json
json "config_acs is not offered to a kernel without it" \
	'.findings | map(select(.id == "acs-redirect")) | length == 1 and
	 (.[0].cure | test("disable_acs_redir=") and (test("config_acs=") | not))'
doctor 2 --from staged.rec --json /data/x 0
json "the question is answered" '.answer | .path == "bounce" and
	(.reason | test("ACS")) and .gpus[0].verdict == "staged" and
	any(.steps[]; .step == "pci" and .ok == "no")'
doctor 0 --from healthy.rec --json /dev/nvme0n1 0
json "of a block device, too" '.answer.path == "p2p"'
doctor 0 --from healthy.rec /data/x 0
said "^/data/x into GPU0 (0000:03:00.0): yes, straight, with NVIDIA.s cuFile (with Peerlane.s it is staged on NVIDIA GPUs; PEERLANE_NVIDIA_UVM=1 enables memory of cuMemCreate(), untested)$"
for page in README.md docs/reference/limits.md; do
	check "$page says the same of NVIDIA GPUs" grep -qE "On NVIDIA GPUs .*stages the data: .* has not been tested on a kernel with P2PDMA" "$TOP/$page"
done
doctor 2 --from staged.rec /data/x 0
said '^/data/x into GPU0 (0000:03:00.0): no, it is staged'

# ---- a file on two drives: the worse one counts; a machine: the better one ----
cat >two.patch <<'END'
D /sys/bus/pci/devices 0000:00:00.0 0000:00:01.0 0000:00:02.0 0000:01:00.0 0000:02:00.0 0000:02:01.0 0000:02:02.0 0000:03:00.0 0000:04:00.0 0000:05:00.0 0000:06:00.0
F @PCI/0000:00:02.0/class 0x060400\n
F @PCI/0000:00:02.0/vendor 0x8086\n
F @PCI/0000:00:02.0/device 0x2222\n
C 0000:00:02.0 8086:2222 root 005f 0000
L @PCI/0000:06:00.0 /sys/devices/pci0000:00/0000:00:02.0/0000:06:00.0
F @PCI/0000:06:00.0/class 0x010802\n
F @PCI/0000:06:00.0/vendor 0x144d\n
F @PCI/0000:06:00.0/device 0xa80a\n
C 0000:06:00.0 144d:a80a endpoint
L @PCI/0000:06:00.0/driver /sys/bus/pci/drivers/nvme
L /sys/class/block/nvme1n1 /sys/devices/pci0000:00/0000:00:02.0/0000:06:00.0/nvme/nvme1/nvme1n1
L /sys/dev/block/259:1 /sys/devices/virtual/block/md0
F /sys/devices/virtual/block/md0/md/level raid0\n
D /sys/devices/virtual/block/md0/slaves nvme0n1 nvme1n1
END
record "$base" two.patch >two.rec
doctor 2 --from two.rec --json /data/x 0
json "a file on both: the far drive decides" '.answer | .path == "bounce" and
	.gpus[0].verdict == "staged" and ([.steps[] | select(.step == "drive")] | length) == 2'
doctor 0 --from two.rec --json /dev/nvme0n1 0
json "on the near one: direct" '.answer.path == "p2p"'
doctor 0 --from two.rec --json
json "the machine: each GPU has a near drive" '.verdict == "healthy"'

# ---- nvidia-fs, with the NVMe driver that has its hooks ----
cat >nvidia-fs.patch <<'END'
E /proc/config.gz#CONFIG_PCI_P2PDMA ENOKEY
F /proc/driver/nvidia-fs/modules nvme: 1.0\n
D /sys/module/nvidia_fs version
F /sys/module/nvidia_fs/version 2.28.4\n
END
record "$base" nvidia-fs.patch >nvidia-fs.rec
doctor 1 --from nvidia-fs.rec --json /data/x 0
json "direct, but with that module only" '.answer.path == "nvidia-fs" and
	any(.findings[]; .id == "kernel-no-p2pdma" and .severity == "warning")'
sed -i 's/^F .*nvidia-fs.modules.*/F \/proc\/driver\/nvidia-fs\/modules lustre: 1.0\\n/' nvidia-fs.rec
doctor 2 --from nvidia-fs.rec --json /data/x 0
json "without the hooks: staged" '.answer.path == "bounce"'

# ---- fewer facts ----
# what others than root get of a config space: 64 bytes
sed -E 's,^(X .*/0000:02:0[01]\.0/config [0-9a-f]{128}).*,\1,' healthy.rec >hidden.rec
doctor 0 --from hidden.rec --json
json "hidden ACS: the fact is missing, and how to get it is said" '
	any(.missing[]; .fact == "the ACS control bits of bridges" and
		.error == "EACCES" and (.cure | test("root")) and
		(.where | length) == 2)'
doctor 1 --from hidden.rec --json /data/x 0
json "… and the question is open" '.answer.path == "unknown"'
printf 'V 1\nD /sys/bus/pci/devices 0000:00:00.0\n' >empty.rec
"$tool" doctor --from empty.rec --json >out 2>err
json "an almost empty record is judged all the same" \
	'.verdict == "broken" and (.missing | length) > 2'

# ---- this machine ----
"$tool" doctor --json --record this.rec >out 2>err
live=$?
check "this machine: a verdict" test "$live" -le 2
cp out live.json
"$tool" doctor --json --from this.rec >out 2>err
check_eq "its record: the same status" "$live" "$?"
check "its record: the same answer" cmp out live.json
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	setpriv --reuid 65534 --regid 65534 --clear-groups "$tool" doctor --json \
		>out 2>err
	check "nobody: a verdict" test "$?" -le 2
	json "nobody: what is missing comes with a cure" 'all(.missing[]; .cure)'
fi
touch here
"$tool" doctor --json here >out 2>err
json "a file here: an answer" '.answer.path | IN("p2p", "bounce", "unknown", "nvidia-fs")'

need_tool strace
strace -f -o trace -e trace=open,openat,openat2,creat,unlink,unlinkat,rename,mknod,ioctl,write,mount \
	"$tool" doctor -v here >/dev/null 2>&1
strace -f -o trace.all -e trace=open,openat,openat2,creat,unlink,unlinkat,rename,mknod,ioctl,write,mount \
	"$tool" doctor -v >/dev/null 2>&1
cat trace.all >>trace
check "strace has seen the reading" grep -q 'openat.*"/proc/self/mountinfo"' trace
check_eq "nothing is opened for writing, made or removed" "" \
	"$(grep -E 'O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|creat\(|unlink|rename|mknod|mount\(' trace)"
check_eq "no device is opened" "" "$(grep -E 'open[a-z0-9]*\(.*"/dev/[^"]' trace |
	grep -vE 'O_DIRECTORY')"
check_eq "nothing is written but the output" "" \
	"$(grep -E 'write\(' trace | grep -vE 'write\([12],')"
finish
