#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peerlane doctor on drives of other hosts by RDMA: direct where the RDMA device reaches the GPU, staged with the reason where not
# tags: doctor rdma
# tier: check
# timeout: 60

. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/doctor/lib.sh"

# far PATCH [PATH [GPU]]: what doctor says of the record made of healthy.desc, far.patch and the PATCH
far() {
	printf '%s\n' "$1" >more.patch
	shift
	record "$base" "$TOP/tests/doctor/far.patch" more.patch >rec
	"$tool" doctor --from rec --json "$@" >out 2>err
	status=$?
	[ ! -s err ] || sed 's/^/# /' err
	in_shape out
}
# answers DESC STATUS CONDITION
answers() {
	check_eq "$1: status" "$2" "$status"
	json "$1" "[.findings[].id] as \$ids | .findings[0] as \$f | $3" || jq -c '.answer, .findings' out | sed 's/^/# /'
}
redirect='C 0000:02:02.0 10b5:8747 downstream 005f 001d'

far "" /far/x 0
answers "below one switch: direct" 0 '.answer.path == "p2p" and .answer.gpus[0].verdict == "direct" and $ids == [] and
	any(.answer.steps[]; .step == "pci" and .ok == "ok" and (.says | startswith("mlx5_0 (0000:05:00.0) to GPU0 (0000:03:00.0): direct, ")))'
far ""
answers "the machine: nothing to complain about" 0 '$ids == [] and .sections.nvme.nvme1 == "of another host, by RDMA: mlx5_0"'

far "$redirect" /far/x 0
answers "the port above the NIC redirects: staged" 2 '.answer.path == "bounce" and $ids == ["nvme-rdma-apart"] and
	(.answer.reason | test("^mlx5_0, the RDMA device of nvme1, does not reach GPU0: ACS redirect is on at 0000:02:02.0")) and
	$f.where == ["nvme1n1", "0000:03:00.0"] and ($f.cure | startswith("turn ACS redirect off at 0000:02:02.0: "))'
json "... the drive is the step that says no, and so is the way" '[.answer.steps[] | select(.ok == "no").step] == ["block", "pci"]'
far "$redirect"
answers "... of the machine a warning" 1 '($ids | index("nvme-rdma-apart")) and all(.findings[]; .severity == "warning")'
far "$redirect" /data/x 0
answers "... another file, on the drive of this host, is not concerned" 0 '.answer.path == "p2p" and $ids == []'

far "$redirect
F /proc/cpuinfo#vendor_id AuthenticAMD
F /proc/cpuinfo#cpu\\x20family 25" /far/x 0
answers "a processor that passes it on: through the root complex" 0 '.answer.path == "p2p" and .answer.gpus[0].verdict == "root-complex" and
	any(.answer.steps[]; .step == "pci" and .ok == "far") and $ids == []'

# A second NIC below a root port of its own
more='D /sys/bus/pci/devices 0000:00:00.0 0000:00:01.0 0000:00:02.0 0000:01:00.0 0000:02:00.0 0000:02:01.0 0000:02:02.0 0000:03:00.0 0000:04:00.0 0000:05:00.0 0000:06:00.0
D /sys/devices/pci0000:00 0000:00:00.0 0000:00:01.0 0000:00:02.0
F @PCI/0000:00:02.0/class 0x060400\n
F @PCI/0000:00:02.0/vendor 0x8086\n
F @PCI/0000:00:02.0/device 0x2222\n
C 0000:00:02.0 8086:2222 root 005f 0000
E @PCI/0000:00:02.0/aer_dev_nonfatal ENOENT
L @PCI/0000:06:00.0 /sys/devices/pci0000:00/0000:00:02.0/0000:06:00.0
F @PCI/0000:06:00.0/class 0x020700\n
F @PCI/0000:06:00.0/vendor 0x15b3\n
F @PCI/0000:06:00.0/device 0x1021\n
C 0000:06:00.0 15b3:1021 endpoint
L @PCI/0000:06:00.0/driver /sys/bus/pci/drivers/mlx5_core
E @PCI/0000:06:00.0/physfn ENOENT
E @PCI/0000:06:00.0/iommu_group ENOENT
F @PCI/0000:06:00.0/numa_node 0\n
E @PCI/0000:06:00.0/aer_dev_nonfatal ENOENT
D @PCI/0000:06:00.0/infiniband mlx5_1
D /sys/class/infiniband mlx5_0 mlx5_1
L /sys/class/infiniband/mlx5_1/device /sys/devices/pci0000:00/0000:00:02.0/0000:06:00.0
L /sys/class/infiniband/mlx5_1/device/driver /sys/bus/pci/drivers/mlx5_core'
far "$more
F /peerlane/nvmeof/nvme1#cards mlx5_1" /far/x 0
answers "by a NIC that is elsewhere: staged, and the cure is the other NIC" 2 '.answer.path == "bounce" and $ids == ["nvme-rdma-apart"] and
	(.answer.reason | test("^mlx5_1, .* does not reach GPU0: no bridge in common")) and
	($f.cure | startswith("connect the drive by mlx5_0 (0000:05:00.0), which reaches GPU0: nvme disconnect -d nvme1; "))'
far "$more
D /sys/bus/pci/devices 0000:00:00.0 0000:00:01.0 0000:00:02.0 0000:01:00.0 0000:02:00.0 0000:02:01.0 0000:02:02.0 0000:03:00.0 0000:04:00.0 0000:05:00.0 0000:06:00.0 0000:06:00.1
F /peerlane/nvmeof/nvme1#cards mlx5_1
L @PCI/0000:06:00.1 /sys/devices/pci0000:00/0000:00:02.0/0000:06:00.1
F @PCI/0000:06:00.1/class 0x030200\\n
F @PCI/0000:06:00.1/vendor 0x1234\\n
F @PCI/0000:06:00.1/device 0x9e71\\n
C 0000:06:00.1 1234:9e71 endpoint
L @PCI/0000:06:00.1/driver /sys/bus/pci/drivers/peerlane_gpu
E @PCI/0000:06:00.1/iommu_group ENOENT" /far/x 0
answers "... or a GPU that it reaches" 2 '.answer.path == "bounce" and
	any(.findings[]; .id == "nvme-rdma-apart" and .cure == "use GPU1 (0000:06:00.1), which the RDMA device reaches" and .cost == "none")'
for cards in "mlx5_0 mlx5_1" "mlx5_1 mlx5_0"; do
	far "$more
F /peerlane/nvmeof/nvme1#cards $cards" /far/x 0
	answers "by both ($cards): the worse one decides" 2 '.answer.path == "bounce" and (.answer.reason | startswith("mlx5_1, "))'
done

far 'F /peerlane/nvmeof/nvme1#cards rxe0' /far/x 0
answers "an RDMA device that is software: staged" 2 '.answer.path == "bounce" and .answer.reason == "rxe0, the RDMA device of nvme1, is no PCI device"'
far 'F /peerlane/nvmeof/nvme1#cards ? none has a connection to it' /far/x 0
answers "none is known: staged, as libcufile would" 2 '.answer.path == "bounce" and
	.answer.reason == "which RDMA device nvme1 has is not known: none has a connection to it"'
far '- /peerlane/nvmeof/nvme1#cards' /far/x 0
answers "a record that does not say" 2 '.answer.reason | endswith("is not known: the record does not say")'
far 'F /sys/class/nvme/nvme1/transport tcp\n' /far/x 0
answers "by TCP: no device does its DMA" 2 '.answer.path == "bounce" and $ids == ["fs-no-drive"]'
far 'F /proc/sys/kernel/osrelease 7.1.0-1-server\n' /far/x 0
answers "before Linux 7.2" 2 '.answer.path == "bounce" and ($ids | index("nvme-rdma-old")) and (.answer.reason | test("^nvme-rdma of kernel 7.1.0-1-server"))'

# By two controllers, one of which has the wrong NIC, below a disk of multipath
far "$more
D /sys/class/nvme nvme0 nvme1 nvme2
F /sys/class/nvme/nvme2/transport rdma\\n
F /peerlane/nvmeof/nvme2#cards mlx5_1
L /sys/class/block/nvme1n1 /sys/devices/virtual/nvme-subsystem/nvme-subsys1/nvme1n1
L /sys/dev/block/259:2 /sys/devices/virtual/nvme-subsystem/nvme-subsys1/nvme1n1
E /sys/devices/virtual/nvme-subsystem/nvme-subsys1/nvme1n1/partition ENOENT
D /sys/devices/virtual/nvme-subsystem/nvme-subsys1 nvme1 nvme1n1 nvme2
L /sys/devices/virtual/nvme-subsystem/nvme-subsys1/nvme1 /sys/devices/virtual/nvme-fabrics/ctl/nvme1
L /sys/devices/virtual/nvme-subsystem/nvme-subsys1/nvme2 /sys/devices/virtual/nvme-fabrics/ctl/nvme2" /far/x 0
answers "two ways to one drive: the worse one decides" 2 '.answer.path == "bounce" and $f.where[0] == "nvme2" and
	(.answer.reason | startswith("mlx5_1, the RDMA device of nvme2, does not reach GPU0"))'
finish
