#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: topology files become QEMU arguments, bad ones one-line errors
# tags: harness
# tier: check
# timeout: 120

. "$TOP/scenarios/lib/case.sh"

# shellcheck source=scenarios/lib/machine/topology.sh
. "$TOP/scenarios/lib/machine/topology.sh"

args() { # FILE
	topology args "./${1#./}" "disk0=/d0 disk1=/d1:blkdebug=/rules"
}

for topo in $(topology_names); do
	images=$(topology images "$topo" | sed 's,.*,&=/&,' | tr '\n' ' ')
	check "$topo is good" topology args "$topo" "$images"
	check_eq "and gives no warning" "" "$(topology args "$topo" "$images" \
		2>&1 >/dev/null)"
	check "it says what it is" sh -c 'echo "$1" | grep -q "^[A-Z].*[a-z]"' sh "$(topology_title "$topo")"
done

bad() { # ERROR-REGEX, lines on standard input
	{
		echo "machine q35 -"
		cat
	} >t.topo
	refused "$1"
}

bad_machine() { # ERROR-REGEX, a whole file on standard input
	cat >t.topo
	refused "$1"
}

refused() { # ERROR-REGEX: t.topo is
	if args t.topo >out 2>err; then
		fail "refused: $1" "it was taken"
	elif [ "$(wc -l <err)" -ne 1 ]; then
		fail "refused: $1" "more than one line: $(cat err)"
	elif [ -s out ]; then
		fail "refused: $1" "arguments came out"
	elif grep -qE -e "^./t.topo:[0-9]+: .*$1" err; then
		pass "refused: $1"
	else
		fail "refused: $1" "$(cat err)"
	fi
}

bad 'has 2 words' <<END
rp0 root-port
END
bad 'no kind of device' <<END
rp0 rootport pcie.0
END
bad 'already used in line 2' <<END
rp0 root-port pcie.0
rp0 root-port pcie.0
END
bad 'no port is called "rp1"' <<END
gpu0 gpu rp1
END
bad 'already holds gpu0' <<END
rp0 root-port pcie.0
gpu0 gpu rp0
gpu1 gpu rp0
END
bad 'belongs on pcie.0 or a host-bridge, not on rp0' <<END
rp0 root-port pcie.0
rp1 root-port rp0
END
bad 'not pcie.0' <<END
gpu0 gpu pcie.0
END
bad 'not hb1' <<END
hb1 host-bridge pcie.0
gpu0 gpu hb1
END
bad 'sw0 is no port; its ports are sw0.0' <<END
rp0 root-port pcie.0
sw0 switch rp0
gpu0 gpu sw0
END
bad 'gpu0 is no port' <<END
rp0 root-port pcie.0
gpu0 gpu rp0
nvme0 nvme gpu0 image=disk0
END
bad 'a host-bridge belongs on pcie.0, not on rp0' <<END
rp0 root-port pcie.0
hb1 host-bridge rp0
END
bad 'no key "numa" .it has: node.' <<END
hb1 host-bridge pcie.0 numa=1
END
bad 'node=1 is none of the machine.s nodes .it has nodes=1' <<END
hb1 host-bridge pcie.0 node=1
END
bad_machine 'node=2 is none of the machine.s 2 nodes' <<END
machine q35 - nodes=2
hb1 host-bridge pcie.0 node=2
END
bad 'a root-port has no key "node"$' <<END
rp0 root-port pcie.0 node=0
END
bad 'pcie.0 has no slot left for rp30' <<END
$(awk 'BEGIN { for (i = 1; i < 32; i++) print "rp" i, "root-port pcie.0" }')
END
bad 'more than 7 host-bridges' <<END
$(awk 'BEGIN { for (i = 1; i < 9; i++) print "hb" i, "host-bridge pcie.0" }')
END
switches() { # HOW-MANY, of 32 ports each, one below the other
	echo "sw1 switch $2 ports=32"
	awk -v n="$1" 'BEGIN {
		for (i = 2; i <= n; i++)
			print "sw" i, "switch sw" i - 1 ".0 ports=32"
	}'
}
bad 'more than 256 PCI buses below pcie.0' <<END
rp0 root-port pcie.0
$(switches 8 rp0)
END
bad 'more than 32 PCI buses below hb1' <<END
hb1 host-bridge pcie.0
rp0 root-port hb1
$(switches 1 rp0)
END
bad 'more than 32 PCI buses below pcie.0, which' <<END
rp0 root-port pcie.0
$(switches 1 rp0)
hb1 host-bridge pcie.0
END
bad_machine 'memory=255M is less than the 256M' <<END
machine q35 - memory=255M
END
bad_machine 'cpus=3 cannot be divided equally among 2' <<END
machine q35 - cpus=3 nodes=2
END
bad_machine 'cpus=2 cannot be divided equally among 4' <<END
machine q35 - cpus=2 nodes=4
END
bad_machine 'memory=1G cannot be divided equally among 3' <<END
machine q35 - memory=1G cpus=3 nodes=3
END
bad_machine 'nodes=9 is no number from 1 to 8' <<END
machine q35 - nodes=9
END
bad_machine 'iommu=on is not off, passthrough or translated' <<END
machine q35 - iommu=on
END
bad 'acs=maybe is not on, off or redirect' <<END
rp0 root-port pcie.0
sw0 switch rp0 acs=maybe
END
bad 'model=other is not peerlane or x3130' <<END
rp0 root-port pcie.0
sw0 switch rp0 model=other
END
bad 'model x3130 has no ACS' <<END
rp0 root-port pcie.0
sw0 switch rp0 model=x3130 acs=off
END
bad 'width and latency need gen=' <<END
rp0 root-port pcie.0
sw0 switch rp0 width=16
END
bad 'width and latency need gen=' <<END
rp0 root-port pcie.0
sw0 switch rp0 latency=100
END
bad 'gen=6 is no number from 1 to 5' <<END
rp0 root-port pcie.0
sw0 switch rp0 gen=6
END
bad 'width=12 is not 1, 2, 4, 8, 16 or 32' <<END
rp0 root-port pcie.0
sw0 switch rp0 gen=4 width=12
END
bad 'latency=1ms is no number from 0 to 1000000' <<END
rp0 root-port pcie.0
sw0 switch rp0 gen=4 latency=1ms
END
bad 'model x3130 has no links with time' <<END
rp0 root-port pcie.0
sw0 switch rp0 gen=4 model=x3130
END
bad 'no device can be called memory' <<END
memory root-port pcie.0
END
bad 'no key "vrm"' <<END
rp0 root-port pcie.0
gpu0 gpu rp0 vrm=1G
END
bad 'stands twice' <<END
rp0 root-port pcie.0
gpu0 gpu rp0 vram=1G vram=2G
END
bad 'is no size' <<END
rp0 root-port pcie.0
gpu0 gpu rp0 vram=lots
END
bad 'no power of two' <<END
rp0 root-port pcie.0
gpu0 gpu rp0 bar1=3G
END
bad 'coherent=maybe is not on or off' <<END
rp0 root-port pcie.0
gpu0 gpu rp0 coherent=maybe
END
bad 'rebar=yes is not on or off' <<END
rp0 root-port pcie.0
gpu0 gpu rp0 rebar=yes
END
bad 'bar1=512K is less than 1M' <<END
rp0 root-port pcie.0
gpu0 gpu rp0 bar1=512K rebar=on
END
bad_machine 'more than 256G' <<END
machine q35 - memory=64G
rp0 root-port pcie.0
gpu0 gpu rp0 vram=200G bar1=256M rebar=on
rp1 root-port pcie.0
gpu1 gpu rp1 vram=1M bar1=64K
END
bad 'vram=100K is no multiple of 64K' <<END
rp0 root-port pcie.0
gpu0 gpu rp0 vram=100K bar1=64K
END
bad 'no power of two from 64K' <<END
rp0 root-port pcie.0
gpu0 gpu rp0 bar1=32K
END
bad 'more than 16 times memory=1G' <<END
rp0 root-port pcie.0
gpu0 gpu rp0 vram=15G bar1=256M coherent=on
rp1 root-port pcie.0
gpu1 gpu rp1 vram=1M bar1=64K
END
bad_machine 'more than 256G' <<END
machine q35 - memory=64G
rp0 root-port pcie.0
gpu0 gpu rp0 vram=100G bar1=128G coherent=on
rp1 root-port pcie.0
gpu1 gpu rp1 vram=1M bar1=64K
END
bad 'from 1 to 16' <<END
rp0 root-port pcie.0
gpu0 gpu rp0 queues=17
END
bad 'lid=0 is no number from 1 to 49151' <<END
rp0 root-port pcie.0
cx0 cx rp0 lid=0
END
bad 'lid=2 is that of "cx0", too' <<END
rp0 root-port pcie.0
rp1 root-port pcie.0
cx0 cx rp0 lid=2
cx1 cx rp1
END
bad 'link=token-ring is not infiniband or ethernet' <<END
rp0 root-port pcie.0
cx0 cx rp0 link=token-ring
END
bad 'a cx has no key "image"' <<END
rp0 root-port pcie.0
cx0 cx rp0 image=disk0
END
bad 'pcie.0' <<END
cx0 cx pcie.0
END
bad 'needs image=NAME' <<END
rp0 root-port pcie.0
nvme0 nvme rp0
END
bad 'gives no image called disk7' <<END
rp0 root-port pcie.0
nvme0 nvme rp0 image=disk7
END
bad 'image=/tmp/x is no name of an image' <<END
rp0 root-port pcie.0
nvme0 nvme rp0 image=/tmp/x
END
bad 'already belongs to nvme0' <<END
rp0 root-port pcie.0
rp1 root-port pcie.0
nvme0 nvme rp0 image=disk0
nvme1 nvme rp1 image=disk0
END
bad 'is not key=value' <<END
rp0 root-port pcie.0
gpu0 gpu rp0 vram
END
bad 'is no name' <<END
0rp root-port pcie.0
END
bad 'no port is called "sw0.2"' <<END
rp0 root-port pcie.0
sw0 switch rp0 ports=2
gpu0 gpu sw0.2
END
bad 'no comma' <<END
rp0 root-port pcie.0
gpu0 gpu rp0 uuid=x,bus=pcie.0
END
bad 'already a machine' <<END
other q35 -
END

echo "rp0 root-port pcie.0" >t.topo
check_fails "a file without a machine is refused" "^./t.topo:1: the first line is the machine" args t.topo
: >t.topo
check_fails "an empty file is refused" "^./t.topo: there is no machine in it" args t.topo

# what has no line of its own to blame
cat >t.topo <<END
machine q35 - iommu=translated
rp0 root-port pcie.0
sw0 switch rp0 model=x3130
END
args t.topo >out 2>err
check_eq "the machine that corrupts data is allowed" 0 $?
check_eq "with one warning" "./t.topo:3: warning: behind model=x3130 and an IOMMU that translates, transfers between devices go wrong" "$(cat err)"

cat >t.topo <<END
machine q35 - memory=1G
rp0 root-port pcie.0
gpu0 gpu rp0 vram=8G bar1=8G coherent=on
END
check "apertures of 16 times the memory fit" args t.topo

# what fits just so: 7 host bridges with 32 buses each
{
	echo "machine q35 - cpus=8 nodes=8"
	awk 'BEGIN {
		for (i = 1; i < 8; i++) {
			print "hb" i, "host-bridge pcie.0 node=" i
			print "rp" i, "root-port hb" i
			print "sw" i, "switch rp" i " ports=29"
		}
	}'
} >t.topo
check "7 host bridges with 32 buses each fit" args t.topo
args t.topo >out
check_eq "their bus numbers are 32 apart, each with its node; Linux scans them upwards" \
	"$(awk 'BEGIN { for (i = 7; i > 0; i--) print "pxb-pcie,id=hb" i ",bus=pcie.0,bus_nr=" 32 * i ",numa_node=" i }')" \
	"$(grep pxb-pcie out)"
check_eq "the nodes share memory and processors" \
	"$(awk 'BEGIN { for (i = 0; i < 8; i++) {
		print "memory-backend-ram,id=node" i "-memory,size=128M"
		print "node,nodeid=" i ",memdev=node" i "-memory,cpus=" i } }')" \
	"$(grep -E '^(memory-backend-ram|node,)' out)"

awk 'BEGIN {
	print "machine q35 -"
	for (i = 0; i < 8; i++) {
		print "rp" i, "root-port pcie.0"
		print "g" i, "gpu rp" i " vram=64M"
	}
}' >t.topo
check_eq "8 GPUs share what the machine has of BAR1 runs" \
	"$((1536 / 8)) $((1536 / 8)) $((1536 / 8)) $((1536 / 8)) $((1536 / 8)) $((1536 / 8)) $((1536 / 8)) $((1536 / 8))" \
	"$(args t.topo | sed -n 's/.*bar1-runs=//p' | tr '\n' ' ' | sed 's/ $//')"
sed -i 7q t.topo
args t.topo >out
check_eq "3 GPUs have their own" 3 "$(grep -c 'peerlane-gpu.*queues=4$' out)"

for mode in off= 'passthrough=intel_iommu=on iommu=pt' translated=intel_iommu=on; do
	echo "machine q35 - iommu=${mode%%=*}" >t.topo
	check_eq "kernel parameters of iommu=${mode%%=*}" "${mode#*=}" \
		"$(topology cmdline ./t.topo)"
done

cat >t.topo <<END
m    q35       -      memory=2G cpus=4 cpu=EPYC iommu=translated nodes=2  # comment
rp0  root-port pcie.0
sw0  switch    rp0    ports=2

g    gpu       sw0.1  vram=16G bar1=256M coherent=on queues=2
hb1  host-bridge pcie.0 node=1
rp1  root-port hb1
sw1  switch    rp1    ports=1 acs=redirect
n    nvme      sw1.0  image=disk1
rp2  root-port pcie.0
sw2  switch    rp2    ports=1 model=x3130
sw3  switch    sw2.0  ports=1 acs=off gen=5 width=8
c1   cx        sw3.0
rp3  root-port pcie.0
c2   cx        rp3    lid=258 link=ethernet
END
check_eq "the images are these" disk1 "$(topology images ./t.topo)"
check_eq "the devices are these" "$(cat <<'END'
m q35 - memory=2G cpus=4 cpu=EPYC iommu=translated nodes=2
rp0 root-port pcie.0
sw0 switch rp0 ports=2 model=peerlane acs=on
g gpu sw0.1 vram=16G bar1=256M coherent=on
hb1 host-bridge pcie.0 node=1
rp1 root-port hb1
sw1 switch rp1 ports=1 model=peerlane acs=redirect
n nvme sw1.0 image=disk1
rp2 root-port pcie.0
sw2 switch rp2 ports=1 model=x3130 acs=off
sw3 switch sw2.0 ports=1 model=peerlane acs=off gen=5 width=8 latency=0
c1 cx sw3.0 lid=1
rp3 root-port pcie.0
c2 cx rp3 lid=258 link=ethernet
END
)" "$(topology devices ./t.topo)"
args t.topo >out 2>err
check_eq "the arguments are these" "$(cat <<'END'
-machine
q35
-global
ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off
-cpu
EPYC,phys-bits=39
-smp
4,sockets=2
-m
2G
-object
memory-backend-ram,id=node0-memory,size=1024M
-numa
node,nodeid=0,memdev=node0-memory,cpus=0-1
-object
memory-backend-ram,id=node1-memory,size=1024M
-numa
node,nodeid=1,memdev=node1-memory,cpus=2-3
-device
intel-iommu
-device
pxb-pcie,id=hb1,bus=pcie.0,bus_nr=32,numa_node=1
-device
pcie-root-port,id=rp0,bus=pcie.0,chassis=1,slot=1
-device
peerlane-switch-upstream,id=sw0,bus=rp0
-device
peerlane-switch-downstream,acs=on,id=sw0.0,bus=sw0,chassis=2,slot=2
-device
peerlane-switch-downstream,acs=on,id=sw0.1,bus=sw0,chassis=3,slot=3
-device
peerlane-gpu,id=g,bus=sw0.1,vram-size=16G,bar1-size=256M,coherent=on,queues=2
-device
pcie-root-port,id=rp1,bus=hb1,chassis=4,slot=4
-device
peerlane-switch-upstream,id=sw1,bus=rp1
-device
peerlane-switch-downstream,acs=on,acs-control=0x1d,id=sw1.0,bus=sw1,chassis=5,slot=5
-blockdev
driver=file,node-name=n-file,filename=/d1,cache.no-flush=on
-blockdev
driver=blkdebug,node-name=n-faults,image=n-file,config=/rules
-blockdev
driver=raw,node-name=n-disk,file=n-faults
-device
nvme,id=n,bus=sw1.0,serial=n,drive=n-disk
-device
pcie-root-port,id=rp2,bus=pcie.0,chassis=6,slot=6
-device
x3130-upstream,id=sw2,bus=rp2
-device
xio3130-downstream,id=sw2.0,bus=sw2,chassis=7,slot=7
-device
peerlane-switch-upstream,link-gen=5,link-width=8,link-latency=0,id=sw3,bus=sw2.0
-device
peerlane-switch-downstream,acs=off,link-gen=5,link-width=8,link-latency=0,id=sw3.0,bus=sw3,chassis=8,slot=8
-device
peerlane-cx,id=c1,bus=sw3.0,lid=1,guid=0x0200c9fffe000001
-device
pcie-root-port,id=rp3,bus=pcie.0,chassis=9,slot=9
-device
peerlane-cx,id=c2,bus=rp3,lid=258,guid=0x0200c9fffe000102,link-layer=ethernet
END
)" "$(cat out)"
drive_args() { # IMAGE: the arguments of the drive
	printf "machine q35 -\nrp root-port pcie.0\nn nvme rp image=disk0\n" >drive.topo
	topology args ./drive.topo "disk0=$1" | grep -E "^driver=(file|blk|raw)"
}
check_eq "a log of writes is below the faults" "driver=file,node-name=n-file,filename=/d,cache.no-flush=on
driver=file,node-name=n-log,filename=/log,cache.no-flush=on
driver=blklogwrites,node-name=n-writes,file=n-file,log=n-log
driver=blkdebug,node-name=n-faults,image=n-writes,config=/rules
driver=raw,node-name=n-disk,file=n-faults" "$(drive_args /d:blkdebug=/rules:writes=/log)"
check_eq "and can be alone" "driver=file,node-name=n-file,filename=/d,cache.no-flush=on
driver=file,node-name=n-log,filename=/log,cache.no-flush=on
driver=blklogwrites,node-name=n-writes,file=n-file,log=n-log
driver=raw,node-name=n-disk,file=n-writes" "$(drive_args /d:writes=/log)"
finish
