#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peerlane doctor's findings: only what was asked, in order, with names of devices and cures that can be typed
# tags: doctor
# tier: check
# timeout: 60

. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/doctor/lib.sh"

# of DESC STATUS "ARGS" CONDITION: of the record made of healthy.desc and the patch on stdin
of() {
	cat >"patch"
	record "$base" patch >rec
	# shellcheck disable=SC2086 # words
	"$tool" doctor --from rec --json $3 >out 2>err
	check_eq "$1: status" "$2" "$?" || sed 's/^/# /' err
	json "$1" "([.findings[].id]) as \$ids | $4" ||
		jq -c '.answer.says, (.findings[] | [.id, .severity, .what, .where, .names, .cure, .cost])' out | sed 's/^/# /'
}
finding='def finding($id): .findings | map(select(.id == $id)) | if length == 1 then .[0] else error end; '

# a far drive, a near one, and a second GPU beside the far one; AMD's root complex forwards
cat >far.patch <<'END'
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
D @PCI/0000:06:00.0/nvme nvme1
D @PCI/0000:06:00.0/nvme/nvme1 nvme1n1
D /sys/class/block nvme0n1 nvme0n1p1 nvme1n1
L /sys/class/block/nvme1n1 /sys/devices/pci0000:00/0000:00:02.0/0000:06:00.0/nvme/nvme1/nvme1n1
F /proc/cpuinfo#vendor_id AuthenticAMD
F /proc/cpuinfo#cpu\x20family 25
END

# ---- only what was asked ----
of "the NIC's link is no matter of a file" 0 "/data/x 0" '$ids == []' <<'END'
F @PCI/0000:05:00.0/current_link_width 8\n
END
of "it is one of the machine" 1 "" '$ids == ["link-slow"] and
	.findings[0].names == ["mlx5_0"]' <<'END'
F @PCI/0000:05:00.0/current_link_width 8\n
END
cat far.patch - >gpus.patch <<'END'
F @PCI/0000:05:00.0/class 0x030200\n
F @PCI/0000:05:00.0/vendor 0x10de\n
L @PCI/0000:05:00.0/driver /sys/bus/pci/drivers/vfio-pci
C 0000:02:02.0 10b5:8747 downstream 005f 001d
END
of "ACS between two GPUs is no matter of a file, either" 1 /dev/nvme1n1 '
	($ids | index("pair-root-complex")) and ($ids | index("acs-redirect") | not)' <gpus.patch
of "with an IOMMU that translates, a NIC below the GPU's switch is still below it" 1 "" \
	'$ids == ["iommu-translated"]' <<'END'
L @PCI/0000:03:00.0/iommu_group /sys/kernel/iommu_groups/7
L @PCI/0000:05:00.0/iommu_group /sys/kernel/iommu_groups/8
F /sys/kernel/iommu_groups/7/type DMA-FQ\n
F /sys/kernel/iommu_groups/8/type DMA-FQ\n
END

# ---- cures ----
of "no NIC is near: the cure speaks of none" 0 "" "$finding"'finding("pair-nic").cure | test("^move the NIC or the GPU")' <<'END'
L @PCI/0000:05:00.0 /sys/devices/pci0000:00/0000:00:02.0/0000:05:00.0
END
of "a near drive is there: the cure names it" 1 "/dev/nvme1n1 0" "$finding"'finding("pair-root-complex").cure |
	test("^put the file on nvme0n1 \\(0000:04:00.0\\), which is below the switch of GPU0 \\(0000:03:00.0\\)$")' <far.patch
of "there is no near drive: no cure speaks of one" 1 "" "$finding"'finding("pair-root-complex").cure |
	test("^move the drive or the GPU, so that both are below one PCIe switch")' <<'END'
L @PCI/0000:04:00.0 /sys/devices/pci0000:00/0000:00:02.0/0000:04:00.0
F /proc/cpuinfo#vendor_id AuthenticAMD
F /proc/cpuinfo#cpu\x20family 25
END
cat >small.patch <<'END'
F @PCI/0000:03:00.0/resource 0x00000000f0000000 0x00000000f0ffffff 0x0000000000040200\n0x0000040000000000 0x000004000fffffff 0x000000000014220c\n
F /proc/driver/nvidia/params#RegistryDwords "PeerMappingOverride=1;"
E @PCI/0000:03:00.0/p2pmem/size ENOENT
END
of "a small BAR1 is cured before it is made static" 2 "/data/x 0" "$finding"'
	$ids == ["bar1-small", "nvidia-bar1-write-combined"] and
	(finding("nvidia-bar1-write-combined").cure | test("^first make BAR1 large \\(bar1-small\\)")) and
	(.answer.reason | test("^BAR1 has 256 MiB"))' <small.patch
cat >>small.patch <<'END'
F @PCI/0000:03:00.0/resource1_resize 000000000000ffc0\n
END
of "what the driver is told besides stays; one line has all that is missing" 2 "/data/x 0" "$finding"'
	finding("nvidia-static-bar1").cure as $one | finding("nvidia-bar1-write-combined").cure as $two |
	$one == $two and ($one | test("RegistryDwords=\"PeerMappingOverride=1;RMForceStaticBar1=1;RmForceDisableIomapWC=1;\"'"'"' > /etc/modprobe.d/"))' <<'END'
F /proc/driver/nvidia/version#NVRM\x20version NVIDIA UNIX Open Kernel Module for x86_64  575.64.05  Release Build
F /proc/driver/nvidia/params#RegistryDwords "PeerMappingOverride=1;"
END
of "by commands with the address of the GPU, if it can be" 2 "" "$finding"'finding("bar1-small") |
	(.cure | test("echo 0000:03:00.0 > /sys/bus/pci/drivers/nvidia/unbind; echo 15 > /sys/bus/pci/devices/0000:03:00.0/resource1_resize \\(32768 MiB\\); echo 0000:03:00.0 > .*/bind$")) and
	(.cost | test("reboot"))' <small.patch
of "the only thing missing is the client" 2 "" "$finding"'finding("rdma-no-gpu-path") |
	.cure == "modprobe nvidia_peermem" and .cost == "none"' <<'END'
F /proc/kallsyms#ib_register_peer_memory_client T
F /proc/driver/nvidia/version#NVRM\x20version NVIDIA UNIX x86_64 Kernel Module  595.71.05  Release Build
- /peerlane/trial/mlx5_0#dmabuf
- /peerlane/trial/mlx5_0/0000:03:00.0#dmabuf
- /peerlane/trial/mlx5_0/0000:03:00.0#plain
- /peerlane/trial/mlx5_0/0000:03:00.0#staged
END
of "by trial, too" 1 "" "$finding"'finding("rdma-gpu-staged") |
	.cure == "modprobe nvidia_peermem" and .cost == "none"' <<'END'
F /proc/kallsyms#ib_register_peer_memory_client T
F /peerlane/trial/mlx5_0/0000:03:00.0#dmabuf EOPNOTSUPP: mlx5_0 cannot take dma-bufs
END
of "a drive that vfio-pci has is unbound first, and its override cleared" 1 "" "$finding"'finding("nvme-no-driver").cure ==
	"echo 0000:04:00.0 > /sys/bus/pci/drivers/vfio-pci/unbind; echo > /sys/bus/pci/devices/0000:04:00.0/driver_override; modprobe nvme; echo 0000:04:00.0 > /sys/bus/pci/drivers/nvme/bind"' <<'END'
L @PCI/0000:04:00.0/driver /sys/bus/pci/drivers/vfio-pci
END
of "a block device by its name" 0 "" "$finding"'finding("nvme-scheduler").cure ==
	"echo none > /sys/block/nvme0n1/queue/scheduler"' <<'END'
F @DISK/queue/scheduler none [mq-deadline]\n
END

# ---- the answer: of the first step that says no ----
of "dm-crypt says no" 2 "/data/x 0" '[.answer.steps[] | select(.step == "block") | .ok] == ["no"] and
	(.answer.reason | test("is encrypted \\(dm-0\\)")) and
	all(.answer.steps[] | select(.step != "block"); .ok == "ok")' <<'END'
L /sys/dev/block/259:1 /sys/devices/virtual/block/dm-0
F /sys/devices/virtual/block/dm-0/dm/uuid CRYPT-LUKS2-00000000\n
D /sys/devices/virtual/block/dm-0/slaves nvme0n1
END
of "md says no, though the kernel would, too" 2 "/data/x 0" '(.answer.reason | test("is on md0 \\(raid5\\)")) and
	[.answer.steps[] | select(.ok == "no") | .step] == ["block", "kernel"]' <<'END'
L /sys/dev/block/259:1 /sys/devices/virtual/block/md0
F /sys/devices/virtual/block/md0/md/level raid5\n
D /sys/devices/virtual/block/md0/slaves nvme0n1
E /proc/config.gz#CONFIG_PCI_P2PDMA ENOKEY
E /boot/config-7.2.0-1-server#CONFIG_PCI_P2PDMA ENOKEY
E /proc/kallsyms#pci_p2pdma_add_resource ENOKEY
END
of "a GeForce: it is not promised" 1 "/data/x 0" '.answer.path == "unknown"' <<'END'
F /proc/driver/nvidia/gpus/0000:03:00.0/information#Model NVIDIA GeForce RTX 4090
END
of "a kernel before 6.2 says so" 2 "/data/x 0" '(.answer.steps[] | select(.step == "kernel").says) ==
	"Linux 5.15.0-1-server, P2PDMA for kernel users only"' <<'END'
F /proc/sys/kernel/osrelease 5.15.0-1-server\n
E /proc/kallsyms#p2pdma_pgmap_ops ENOKEY
END
"$tool" topo --from rec >out 2>err
check "and topo agrees" grep -q '^kernel 5.15.0-1-server, P2PDMA for kernel users only' out
"$tool" topo --from rec --json >out 2>err
json "and judges so" '.machine.p2pdma == false and (.pairs[] | select(.a == "GPU0" and .b == "NVME0") |
	.verdict == "staged" and (.reason | test("for kernel users only")))'
of "the configuration beside the kernel's headers counts, y or m" 0 "/data/x 0" '.answer.path == "p2p" and .missing == []' <<'END'
E /proc/config.gz#CONFIG_PCI_P2PDMA ENOENT
E /boot/config-7.2.0-1-server#CONFIG_PCI_P2PDMA ENOENT
E /lib/modules/7.2.0-1-server/config#CONFIG_PCI_P2PDMA ENOENT
F /lib/modules/7.2.0-1-server/build/.config#CONFIG_PCI_P2PDMA y
F /proc/config.gz#CONFIG_DMA_SHARED_BUFFER m
END
"$tool" topo --from rec >out 2>err
check "and topo agrees" grep -q 'P2PDMA on (/lib/modules/7.2.0-1-server/build/.config)' out
of "a table of symbols that may be empty is no answer" 1 "/data/x 0" '.answer.path == "unknown" and
	(.missing | any(.fact == "the kernel\u0027s CONFIG_PCI_P2PDMA" and (.cure | test("as root, or with kernel.kptr"))))' <<'END'
E /proc/config.gz#CONFIG_PCI_P2PDMA ENOENT
E /proc/kallsyms#pci_p2pdma_add_resource ENOKEY
E /proc/kallsyms#pci_enable_device ENOKEY
END
"$tool" topo --from rec >out 2>err
check "and topo agrees" grep -q 'P2PDMA not known' out
of "a drive behind VMD is on PCI" 1 "/data/x 0" '($ids | index("fs-no-drive") | not) and
	([.answer.steps[] | select(.step == "drive") | .says] == ["nvme0n1 (nvme) at 10000:04:00.0"])' <<'END'
L /sys/dev/block/259:1 /sys/devices/pci0000:00/0000:00:0e.0/pci10000:00/10000:00:02.0/10000:04:00.0/nvme/nvme0/nvme0n1
END
of "RAID of a drive and something else is not" 2 "/data/x 0" '(.findings[] | select(.id == "fs-no-drive") | .where) == ["sda"]' <<'END'
L /sys/dev/block/259:1 /sys/devices/virtual/block/md0
F /sys/devices/virtual/block/md0/md/level raid0\n
D /sys/devices/virtual/block/md0/slaves nvme0n1 sda
L /sys/class/block/sda /sys/devices/pci0000:00/0000:00:17.0/ata1/host0/block/sda
END
cat >md.patch <<'END'
D /dev nvidia0 nvidiactl peerlane
L /sys/dev/block/259:1 /sys/devices/virtual/block/md0
F /sys/devices/virtual/block/md0/md/level raid0\n
D /sys/devices/virtual/block/md0/slaves nvme0n1
END
module='[.answer.steps[] | select(.step == "module") | [.ok, .says]]'
of "the module peerlane takes a file on md whose drives do not merge" 0 "/data/x 0" \
	"\$ids == [] and $module == [[\"ok\", \"/dev/peerlane supports it, for GPU memory that cannot be mapped\"]]" <<END
$(cat md.patch)
F /sys/class/block/nvme0n1/queue/nomerges 2\n
END
for pages in '0 where BAR1 has struct pages' '2048 and makes struct pages of BAR1 where there are none'; do
	of "with own_pages_mib=${pages%% *}" 0 "/data/x 0" \
		"$module == [[\"ok\", \"/dev/peerlane supports it, for GPU memory that cannot be mapped, ${pages#* }\"]]" <<END
$(cat md.patch)
F /sys/class/block/nvme0n1/queue/nomerges 2\n
F /sys/module/peerlane/parameters/own_pages_mib ${pages%% *}\n
END
done
of "and refuses others, which is no matter where no IOMMU translates" 0 "/data/x 0" \
	"\$ids == [\"fs-raid-merges\"] and .findings[0].severity == \"info\" and
	($module | .[0][0] == \"-\" and (.[0][1] | test(\"refuse it: it is on md0, and the queue of nvme0n1 merges\")))" <<END
$(cat md.patch)
F /sys/class/block/nvme0n1/queue/nomerges 1\n
END
of "where one does it is a warning" 1 "/data/x 0" "$finding"'finding("fs-raid-merges").severity == "warning"' <<END
$(cat md.patch)
F /sys/class/block/nvme0n1/queue/nomerges 0\n
L @PCI/0000:04:00.0/iommu_group /sys/kernel/iommu_groups/7
F /sys/kernel/iommu_groups/7/type DMA-FQ\n
END
of "but not where a switch's port sends the drive's DMA up" 1 "/data/x 0" "$finding"'finding("fs-raid-merges").severity == "info"' <<END
$(cat md.patch)
F /sys/class/block/nvme0n1/queue/nomerges 0\n
L @PCI/0000:04:00.0/iommu_group /sys/kernel/iommu_groups/7
F /sys/kernel/iommu_groups/7/type DMA-FQ\n
C 0000:02:01.0 10b5:8747 downstream 005f 001d
F /proc/cpuinfo#vendor_id AuthenticAMD
F /proc/cpuinfo#cpu\x20family 25
END
for other in nvme1n1 nvme1c1n1; do
	of "the module refuses it, too, where a drive merges that is not below md: $other" 0 "/data/x 0" \
		"\$ids == [] and ($module | .[0][0] == \"-\" and (.[0][1] | test(\"refuse it: it is on md0, and the queue of $other merges\")))" <<END
$(cat md.patch)
F /sys/class/block/nvme0n1/queue/nomerges 2\n
D /sys/class/block nvme0n1 nvme0n1p1 $other
L /sys/class/block/$other @PCI/0000:06:00.0/nvme/nvme1/$other
F /sys/class/block/$other/queue/nomerges 0\n
END
done
of "not where that is multipath's disk, which has no requests" 0 "/data/x 0" "$module | .[0][0] == \"ok\"" <<END
$(cat md.patch)
F /sys/class/block/nvme0n1/queue/nomerges 2\n
D /sys/class/block nvme0n1 nvme0n1p1 nvme1n1
L /sys/class/block/nvme1n1 /sys/devices/virtual/nvme-subsystem/nvme-subsys1/nvme1n1
F /sys/class/block/nvme1n1/queue/nomerges 0\n
END
of "what is on LVM goes another way, so merges below md are no matter" 2 "/data/x 0" \
	'($ids | index("fs-device-mapper")) and ($ids | index("fs-raid-merges") | not)' <<END
$(cat md.patch)
L /sys/dev/block/259:1 /sys/devices/virtual/block/dm-0
F /sys/devices/virtual/block/dm-0/dm/uuid LVM-0\n
D /sys/devices/virtual/block/dm-0/slaves md0
L /sys/class/block/md0 /sys/devices/virtual/block/md0
F /sys/class/block/nvme0n1/queue/nomerges 0\n
END
of "RAID 0 that stands on RAID 5 says no" 2 "/data/x 0" '.answer.reason | test("is on md1 \\(raid5\\)")' <<END
$(cat md.patch)
D /sys/devices/virtual/block/md0/slaves md1
L /sys/class/block/md1 /sys/devices/virtual/block/md1
F /sys/devices/virtual/block/md1/md/level raid5\n
D /sys/devices/virtual/block/md1/slaves nvme0n1
END
of "the module does not know overlayfs" 1 "/merged/x 0" \
	"$module == [[\"-\", \"/dev/peerlane would refuse it: it supports ext4 and xfs\"]]" <<'END'
D /dev nvidia0 nvidiactl peerlane
END
of "without the module there is no such step" 0 "/data/x 0" "$module == []" <<'END'
END
of "RAIDs that stand on each other: what is below them is not known" 2 "/data/x 0" '.missing | any(.error == "ELOOP" and
	.fact == "the block devices below the mounts" and .where == ["/sys/dev/block/259:1"])' <<'END'
L /sys/dev/block/259:1 /sys/devices/virtual/block/md0
D /sys/devices/virtual/block/md0/slaves md0
L /sys/class/block/md0 /sys/devices/virtual/block/md0
END
of "such a kernel stages files into our GPU, too" 2 "/data/x 0" '.answer.path == "bounce"' <<'END'
L @PCI/0000:03:00.0/driver /sys/bus/pci/drivers/peerlane_gpu
F /proc/sys/kernel/osrelease 5.15.0-1-server\n
E /proc/kallsyms#p2pdma_pgmap_ops ENOKEY
END
"$tool" topo --from rec --json >out 2>err
json "but a driver is such a user: a NIC reaches its memory" '[.pairs[] | select(.a == "GPU0") | [.b, .verdict]] | sort == [
	["NIC0", "direct"], ["NVME0", "staged"]]'

# ---- two GPUs: what one of them has is no fault of the other ----
# a second GPU like the first, below a port of its own
cat >two.patch <<'END'
D /sys/bus/pci/devices 0000:00:00.0 0000:00:01.0 0000:01:00.0 0000:02:00.0 0000:02:01.0 0000:02:02.0 0000:02:03.0 0000:03:00.0 0000:04:00.0 0000:05:00.0 0000:06:00.0
F @PCI/0000:02:03.0/class 0x060400\n
F @PCI/0000:02:03.0/vendor 0x10b5\n
F @PCI/0000:02:03.0/device 0x8747\n
C 0000:02:03.0 10b5:8747 downstream 005f 0000
L @PCI/0000:06:00.0 @SWITCH/0000:02:03.0/0000:06:00.0
F @PCI/0000:06:00.0/class 0x030200\n
F @PCI/0000:06:00.0/vendor 0x10de\n
F @PCI/0000:06:00.0/device 0x2335\n
C 0000:06:00.0 10de:2335 endpoint
L @PCI/0000:06:00.0/driver /sys/bus/pci/drivers/nvidia
E @PCI/0000:06:00.0/physfn ENOENT
E @PCI/0000:06:00.0/iommu_group ENOENT
F @PCI/0000:06:00.0/numa_node 0\n
F @PCI/0000:06:00.0/resource 0x0000124002000000 0x0000124002ffffff 0x000000000014220c\n0x0000000000000000 0x0000000000000000 0x0000000000000000\n0x0000120000000000 0x0000123fffffffff 0x000000000014220c\n
F @PCI/0000:06:00.0/p2pmem/size 274877906944\n
D /dev nvidia0 nvidia1 nvidiactl
END
of "two GPUs in order" 0 /data/x '$ids == [] and .answer.path == "p2p" and
	[.answer.steps[] | select(.step == "driver") | [.ok, .says]] == [["ok", "GPU0: nvidia"], ["ok", "GPU1: nvidia"]]' <two.patch
cat two.patch - >small-two.patch <<'END'
F @PCI/0000:03:00.0/resource 0x00000000f0000000 0x00000000f0ffffff 0x0000000000040200\n0x0000040000000000 0x000004000fffffff 0x000000000014220c\n
E @PCI/0000:03:00.0/p2pmem/size ENOENT
END
of "the small BAR1 of one is a warning, and the other one is direct" 1 /data/x "$finding"'
	(finding("bar1-small") | .severity == "warning" and .where == ["0000:03:00.0"]) and
	.verdict == "degraded" and .answer.path == "p2p" and [.answer.gpus[].path] == ["bounce", "p2p"] and
	[.answer.steps[] | select(.step == "driver") | .ok] == ["no", "ok"]' <small-two.patch
of "also when the machine is asked about" 1 "" "$finding"'.verdict == "degraded" and
	finding("bar1-small").severity == "warning"' <small-two.patch
of "the one that has it is broken, when asked for" 2 "/data/x 0" "$finding"'
	finding("bar1-small").severity == "error" and .answer.path == "bounce"' <small-two.patch
of "and the other is healthy" 0 "/data/x 1" '$ids == [] and .answer.path == "p2p"' <small-two.patch
cat small-two.patch - >both.patch <<'END'
L @PCI/0000:06:00.0/driver /sys/bus/pci/drivers/nouveau
END
of "each has an error of its own: none is direct" 2 /data/x "$finding"'
	[(finding("bar1-small"), finding("gpu-nouveau")).severity] == ["error", "error"] and
	.verdict == "broken" and .answer.reason == "BAR1 has 256 MiB" and
	[.answer.gpus[].path] == ["bounce", "bounce"]' <both.patch
cat two.patch - >nouveau.patch <<'END'
L @PCI/0000:03:00.0/driver /sys/bus/pci/drivers/nouveau
END
of "nouveau has one: a warning" 1 /data/x "$finding"'finding("gpu-nouveau").severity == "warning" and
	[.answer.gpus[].path] == ["bounce", "p2p"]' <nouveau.patch

# of two that can be made large each has its own command, also one without a driver
cat small-two.patch - >resize.patch <<'END'
L @PCI/0000:03:00.0/driver /sys/bus/pci/drivers/nouveau
F @PCI/0000:03:00.0/resource1_resize 000000000000ffc0\n
F @PCI/0000:06:00.0/resource 0x0000124002000000 0x0000124002ffffff 0x000000000014220c\n0x0000000000000000 0x0000000000000000 0x0000000000000000\n0x0000120000000000 0x000012000fffffff 0x000000000014220c\n
F @PCI/0000:06:00.0/resource2_resize 0000000000007f00\n
E @PCI/0000:06:00.0/driver ENOENT
END
of "each BAR1 that can be larger has a cure of its own" 2 "" '[.findings[] | select(.id == "bar1-small") | [.where, .cure]] == [
	[["0000:03:00.0"], "stop what uses the GPU; echo 0000:03:00.0 > /sys/bus/pci/drivers/nouveau/unbind; " +
		"echo 15 > /sys/bus/pci/devices/0000:03:00.0/resource1_resize (32768 MiB); " +
		"echo 0000:03:00.0 > /sys/bus/pci/drivers/nouveau/bind"],
	[["0000:06:00.0"], "echo 14 > /sys/bus/pci/devices/0000:06:00.0/resource2_resize (16384 MiB)"]]' <resize.patch

cat two.patch - >vfio.patch <<'END'
L @PCI/0000:03:00.0/driver /sys/bus/pci/drivers/vfio-pci
END
of "a virtual machine has one: a remark, as the other one is there" 0 /data/x "$finding"'
	finding("gpu-vfio").severity == "info" and [.answer.gpus[].path] == ["bounce", "p2p"]' <vfio.patch
of "and an error for what is read into that one" 2 "/data/x 0" "$finding"'
	finding("gpu-vfio").severity == "error" and .answer.path == "bounce"' <vfio.patch

# ---- another GPU or drive is named only if it can be used ----
# GPU0 and nvme0n1 are below the switch, GPU1 and nvme1n1 are not
cat far.patch - >far-gpu.patch <<'END'
L @PCI/0000:05:00.0 /sys/devices/pci0000:00/0000:05:00.0
F @PCI/0000:05:00.0/class 0x030200\n
F @PCI/0000:05:00.0/vendor 0x10de\n
L @PCI/0000:05:00.0/driver /sys/bus/pci/drivers/nvidia
F @PCI/0000:05:00.0/resource 0x0000124002000000 0x0000124002ffffff 0x000000000014220c\n0x0000000000000000 0x0000000000000000 0x0000000000000000\n0x0000120000000000 0x0000123fffffffff 0x000000000014220c\n
F @PCI/0000:05:00.0/p2pmem/size 274877906944\n
END
of "a GPU below the drive's switch: use it" 1 "/data/x 1" "$finding"'finding("pair-root-complex").cure |
	test("^use GPU0 \\(0000:03:00.0\\), which is below the switch of the file.s drive")' <far-gpu.patch
cat far-gpu.patch - >kept.patch <<'END'
L @PCI/0000:03:00.0/driver /sys/bus/pci/drivers/vfio-pci
END
of "not if a virtual machine has it" 1 "/data/x 1" "$finding"'finding("pair-root-complex").cure |
	test("^move the drive or the GPU")' <kept.patch
cat far-gpu.patch - >raid.patch <<'END'
L /sys/dev/block/259:1 /sys/devices/virtual/block/md0
F /sys/devices/virtual/block/md0/md/level raid0\n
D /sys/devices/virtual/block/md0/slaves nvme0n1 nvme1n1
END
of "not if a drive of the file's RAID is elsewhere" 1 "/data/x 1" "$finding"'finding("pair-root-complex").cure |
	test("^move the drive or the GPU")' <raid.patch
cat far.patch - >spdk.patch <<'END'
L @PCI/0000:04:00.0/driver /sys/bus/pci/drivers/vfio-pci
END
of "a file is put on a drive of the nvme driver only" 1 "/dev/nvme1n1 0" "$finding"'finding("pair-root-complex").cure |
	test("^move the drive or the GPU")' <spdk.patch

# ---- names ----
of "errors come first, and each place once" 2 "/dev/nvme1n1" '([.findings[].severity] | . == sort_by({error: 0, warning: 1, info: 2}[.])) and
	(.findings | length > 1) and all(.findings[]; (.where | length == (unique | length)) and (.names | length) == (.where | length))' <<'END'
D /sys/bus/pci/devices 0000:00:00.0 0000:00:01.0 0000:01:00.0 0000:02:00.0 0000:02:01.0 0000:02:02.0 0000:03:00.0 0000:04:00.0 0000:05:00.0
C 0000:02:01.0 10b5:8747 downstream 005f 001d
F @PCI/0000:03:00.0/current_link_width 8\n
L /sys/class/block/nvme1n1 @DISK
END
"$tool" doctor --from rec >out 2>err
check "text has names beside addresses" grep -q '^  where GPU0 (0000:03:00.0)$' out
check "of ports, too" grep -q '^  where downstream port (0000:02:01.0)$' out
awk -v acs=001d -f "$TOP/tests/topo/record.awk" "$TOP/tests/topo/records/dgx-a100.map" >many.rec
"$tool" doctor --from many.rec >out 2>err
check_eq "a kind of port once, with all of that kind" 1 "$(sed -n "/^warning: acs-redirect/,/^  why/p" out | grep -c "downstream")"
finish
