#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: topology files become QEMU arguments, bad ones one-line errors
# tags: quick harness
# timeout: 20

. "$TOP/tests/lib/case.sh"

args() { # FILE
	awk -v images="disk0=/d0 disk1=/d1:blkdebug=/rules" \
		-f "$TOP/scenarios/lib/topology.awk" "$1"
}

for topo in "$TOP"/scenarios/topologies/*.topo; do
	check "${topo##*/} is good" args "$topo"
done

bad() { # ERROR-REGEX, lines on standard input
	{
		echo "machine q35 -"
		cat
	} >t.topo
	if args t.topo >out 2>err; then
		fail "refused: $1" "it was taken"
	elif [ "$(wc -l <err)" -ne 1 ]; then
		fail "refused: $1" "more than one line: $(cat err)"
	elif [ -s out ]; then
		fail "refused: $1" "arguments came out"
	elif grep -qE -e "^t.topo:[0-9]+: .*$1" err; then
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
bad 'belongs on pcie.0' <<END
rp0 root-port pcie.0
rp1 root-port rp0
END
bad 'not pcie.0' <<END
gpu0 gpu pcie.0
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
bad 'neither on nor off' <<END
rp0 root-port pcie.0
gpu0 gpu rp0 coherent=maybe
END
bad 'from 1 to 16' <<END
rp0 root-port pcie.0
gpu0 gpu rp0 queues=17
END
bad 'needs image=NAME' <<END
rp0 root-port pcie.0
nvme0 nvme rp0
END
bad 'gives no image called disk7' <<END
rp0 root-port pcie.0
nvme0 nvme rp0 image=disk7
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
check_not "a file without a machine is refused" args t.topo
: >t.topo
check_not "an empty file is refused" args t.topo

cat >t.topo <<END
m    q35       -      memory=2G cpus=3 cpu=EPYC   # comment
rp0  root-port pcie.0
sw0  switch    rp0    ports=2

g    gpu       sw0.1  vram=16G bar1=256M coherent=on queues=2
rp1  root-port pcie.0
n    nvme      rp1    image=disk1
END
args t.topo >out
check_eq "the arguments are these" "$(cat <<'END'
-machine
q35
-cpu
EPYC
-smp
3
-m
2G
-device
pcie-root-port,id=rp0,bus=pcie.0,chassis=1,slot=1
-device
x3130-upstream,id=sw0,bus=rp0
-device
xio3130-downstream,id=sw0.0,bus=sw0,chassis=2,slot=2
-device
xio3130-downstream,id=sw0.1,bus=sw0,chassis=3,slot=3
-device
peerlane-gpu,id=g,bus=sw0.1,vram-size=16G,bar1-size=256M,coherent=on,queues=2
-device
pcie-root-port,id=rp1,bus=pcie.0,chassis=4,slot=4
-blockdev
driver=file,node-name=n-file,filename=/d1
-blockdev
driver=blkdebug,node-name=n-faults,image=n-file,config=/rules
-blockdev
driver=raw,node-name=n-disk,file=n-faults
-device
nvme,id=n,bus=rp1,serial=n,drive=n-disk
END
)" "$(cat out)"
finish
