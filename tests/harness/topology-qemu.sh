#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: QEMU takes the arguments of every topology file, and of every key
# tags: harness
# tier: check
# timeout: 100

. "$TOP/scenarios/lib/case.sh"
QEMU=$BUILD/qemu/qemu-system-x86_64
# shellcheck source=scenarios/lib/machine/topology.sh
. "$TOP/scenarios/lib/machine/topology.sh"
need_file "$QEMU"

# starts FILE: the machine is made and ends, no guest runs
# shellcheck disable=SC2317 # check calls it
starts() {
	names=$(topology images "$1") || return
	images=
	for image in $names; do
		truncate -s 1M "$image.img"
		images="$images $image=$image.img"
	done
	topology args "$1" "$images" >qemu.args || return
	set --
	while IFS= read -r arg; do
		set -- "$@" "$arg"
	done <qemu.args
	echo quit | timeout --foreground 20 "$QEMU" "$@" -accel qtest -S \
		-nodefaults -no-user-config -display none -monitor stdio \
		-L /usr/share/qemu -L /usr/share/seabios
}

cat >all-keys.topo <<'END'
m    q35         -      memory=2G cpus=8 cpu=EPYC iommu=translated nodes=4
rp0  root-port   pcie.0
sw0  switch      rp0    ports=16 acs=redirect gen=5 width=8 latency=150
gpu0 gpu         sw0.15 vram=192M bar1=256M coherent=on queues=16 vendor-id=0x10de device-id=0x2330 uuid=00112233-4455-6677-8899-aabbccddeeff
sw1  switch      sw0.0  ports=1 acs=off gen=1 width=32
sw2  switch      sw1.0  ports=2 model=x3130
n    nvme        sw2.1  image=disk1
hb1  host-bridge pcie.0 node=3
rp1  root-port   hb1
sw3  switch      rp1    ports=29 gen=3 width=1 latency=1000000
hb2  host-bridge pcie.0 node=1
END
# as large as it gets
awk 'BEGIN {
	print "m q35 - memory=2G cpus=8 nodes=8"
	for (i = 1; i < 8; i++) {
		print "hb" i, "host-bridge pcie.0 node=" i
		print "rp" i, "root-port hb" i
		print "sw" i, "switch rp" i " ports=29"
	}
}' >most-host-bridges.topo
awk 'BEGIN {
	print "m q35 - cpus=64"
	for (i = 1; i < 7; i++) {
		print "rp" i, "root-port pcie.0"
		print "sw" i, "switch rp" i " ports=32"
	}
	for (i = 7; i < 30; i++)
		print "rp" i, "root-port pcie.0"
}' >most-ports.topo
for machine in $(topology_names) ./all-keys.topo ./most-*.topo; do
	check "$machine" starts "$machine"
done
echo 'm q35 - cpu=no-such' >no-such.topo
check_fails "a processor that QEMU does not have" "unable to find CPU model 'no-such'" starts ./no-such.topo
finish
