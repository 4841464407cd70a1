#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peerlane doctor lists every port of an RDMA device, and judges each
# tags: doctor rdma
# tier: check
# timeout: 60

. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/doctor/lib.sh"

# A NIC with InfiniBand on port 1 and RoCE on port 2
cat >dual.patch <<'END'
D /sys/class/infiniband/mlx5_0/ports 1 2
F /sys/class/infiniband/mlx5_0/ports/1/rate 400 Gb/sec (4X NDR)\n
F /sys/class/infiniband/mlx5_0/ports/1/lid 0x2a\n
F /sys/class/infiniband/mlx5_0/ports/1/sm_lid 0x1\n
F /sys/class/infiniband/mlx5_0/ports/2/state 4: ACTIVE\n
F /sys/class/infiniband/mlx5_0/ports/2/link_layer Ethernet\n
F /sys/class/infiniband/mlx5_0/ports/2/rate 100 Gb/sec (4X EDR)\n
F /sys/class/infiniband/mlx5_0/ports/2/gid_attrs/ndevs/0 eth7\n
F /sys/class/infiniband/mlx5_0/ports/2/gid_attrs/types/0 IB/RoCE v1\n
F /sys/class/infiniband/mlx5_0/ports/2/gid_attrs/types/1 RoCE v2\n
F /sys/class/infiniband/mlx5_0/ports/2/gid_attrs/types/2 IB/RoCE v1\n
F /sys/class/infiniband/mlx5_0/ports/2/gid_attrs/types/3 RoCE v2\n
F /sys/class/net/eth7/mtu 9000\n
F /peerlane/trial/mlx5_0/ports/1#mtu 2048
F /peerlane/trial/mlx5_0/ports/2#mtu 4096
F /peerlane/trial/mlx5_0/ports/2#gid ipv4
F /peerlane/trial/mlx5_0/ports/2#gid_index 3
END
record "$base" dual.patch >dual.rec
doctor 0 --from dual.rec --json
json "nothing is wrong with them" '.verdict == "healthy" and .findings == [] and .missing == []'
json "port 1: link, rate, MTU, LID, subnet manager" '.sections.rdma["mlx5_0 port 1"] ==
	"4: ACTIVE, InfiniBand, 400 Gb/sec (4X NDR), path MTU 2048, LID 0x2a, subnet manager 0x1"'
json "port 2: link, rate, network device, MTUs, GIDs" '.sections.rdma["mlx5_0 port 2"] ==
	"4: ACTIVE, Ethernet, 100 Gb/sec (4X EDR), eth7, with MTU 9000, path MTU 4096, GIDs of RoCE v2: 1, 3, best GID 3 (ipv4)"'
doctor 0 --from dual.rec -v
check "text has them, too" grep -q 'mlx5_0 port 2  *4: ACTIVE, Ethernet' out

# each of its faults is found on the second port, with the first one in order
cat >down.patch <<'END'
F /sys/class/infiniband/mlx5_0/ports/2/state 1: DOWN\n
END
record "$base" dual.patch down.patch >down.rec
doctor 0 --from down.rec --json
json "the second is down: that is said, of it alone" '[.findings[] | select(.section == "rdma")] |
	length == 1 and .[0].id == "rdma-port-down" and .[0].what == "port 2 of mlx5_0 is in state 1: DOWN" and
	.[0].where == ["mlx5_0"]'
json "and its state is seen" '.sections.rdma["mlx5_0 port 2"] | startswith("1: DOWN, Ethernet")'
for i in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
	echo "E /sys/class/infiniband/mlx5_0/ports/2/gid_attrs/types/$i EINVAL"
done >no-gid.patch
record "$base" dual.patch no-gid.patch >no-gid.rec
doctor 1 --from no-gid.rec --json
json "the second has no GID of RoCE v2" '[.findings[] | select(.id == "rdma-no-gid")] |
	length == 1 and .[0].severity == "warning" and .[0].what == "port 2 of mlx5_0 has no RoCE v2 GID"'
json "and the list of GIDs says so" '.sections.rdma["mlx5_0 port 2"] | test(", no GID of RoCE v2, ")'
record "$base" dual.patch no-gid.patch down.patch >both.rec
doctor 0 --from both.rec --json
json "a port that is down needs none" 'all(.findings[]; .id != "rdma-no-gid")'

# two devices, one of InfiniBand and one of RoCE, whose ports have the same number
cat >nics.patch <<'END'
D /sys/class/infiniband mlx5_0 mlx5_1 mlx5_2
END
for i in 1 2; do
	cat <<-END
		L /sys/class/infiniband/mlx5_$i/device @SWITCH/0000:02:02.0/0000:05:00.0
		L /sys/class/infiniband/mlx5_$i/device/driver /sys/bus/pci/drivers/mlx5_core
		D /sys/class/infiniband/mlx5_$i/ports 1
		F /sys/class/infiniband/mlx5_$i/ports/1/state 4: ACTIVE\n
		F /sys/class/infiniband/mlx5_$i/ports/1/link_layer Ethernet\n
		F /sys/class/infiniband/mlx5_$i/ports/1/gid_attrs/ndevs/0 eth$i\n
		F /sys/class/net/eth$i/mtu 9000\n
	END
	for k in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
		echo "E /sys/class/infiniband/mlx5_$i/ports/1/gid_attrs/types/$k EINVAL"
	done
done >>nics.patch
record "$base" nics.patch >nics.rec
"$tool" doctor --from nics.rec --json >out 2>err
json "each port without a GID has the cure with its own network device" '[.findings[] | select(.id == "rdma-no-gid") |
	.where + [.cure | capture("dev (?<dev>[a-z0-9]+);").dev]] == [["mlx5_1", "eth1"], ["mlx5_2", "eth2"]]'
cat >nics-down.patch <<'END'
F /sys/class/infiniband/mlx5_0/ports/1/state 1: DOWN\n
F /sys/class/infiniband/mlx5_1/ports/1/state 1: DOWN\n
F /sys/class/infiniband/mlx5_2/ports/1/state 1: DOWN\n
END
record "$base" nics.patch nics-down.patch >nics-down.rec
"$tool" doctor --from nics-down.rec --json >out 2>err
json "each port that is down has the cure of its own kind" '[.findings[] | select(.id == "rdma-port-down") |
	.where + [.cure | split(";")[0]]] == [
	["mlx5_0", "look at the cable and the subnet manager (ibstat mlx5_0 1"],
	["mlx5_1", "ip link set eth1 up"], ["mlx5_2", "ip link set eth2 up"]]'

# without --try there are no MTU of the path and no choice of a GID
grep -v '^F /peerlane/trial' dual.rec >untried.rec
doctor 0 --from untried.rec --json
json "untried: the kernel's facts are there, and no more" '.sections.rdma["mlx5_0 port 2"] ==
	"4: ACTIVE, Ethernet, 100 Gb/sec (4X EDR), eth7, with MTU 9000, GIDs of RoCE v2: 1, 3"'

# a record that does not have the ports
grep -v 'mlx5_0/ports ' dual.rec >unknown.rec
"$tool" doctor --from unknown.rec --json >out 2>err
json "ports that are not known are missing, not absent" 'any(.missing[];
	.fact == "the ports of an RDMA device" and .error == "ENODATA")'
finish
