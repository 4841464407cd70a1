#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: Linux sees devices come and go below the switch, with consent and without
# tags: guest p2p switch
# tier: all
# timeout: 360

. "$TOP/scenarios/lib/case.sh"
. "$TOP/scenarios/lib/machine/vm.sh"
need_tool jq cpio flock
need_file "$QEMU" "$BUILD/guest/7.2/base.cpio"

BYTES=2097152
mkdir -p case/lib
cp "$TOP/tests/fabric/guest/hotplug" case/run
chmod +x case/run
cp "$TOP/scenarios/lib/guest/guest.sh" case/lib/
echo "BYTES=$BYTES" >case/env
printf '%s\n' nvme peerlane_gpu >case/modules
# 2 MiB in which no two sectors are alike, and as much room
awk -v n=$((BYTES / 512)) 'BEGIN { for (i = 0; i < n; i++) printf "%-511d\n", i }' >disk.img
truncate -s $((2 * BYTES)) disk.img

vm_allow 'nvme nvme0: (controller is down|Device not ready|Removing after|failed)' "it was pulled"
vm_allow 'I/O error, dev nvme0n1' "it was pulled"
VM_TRACE=''
vm_run hotplug "$TOP/tests/fabric/hotplug.topo" 7.2 "$OUT/case" 350 \
	-global ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off \
	-blockdev "driver=file,node-name=file,filename=$OUT/disk.img" \
	-blockdev driver=raw,node-name=disk,file=file
rc=$?
ktap_from "$OUT/hotplug/result.log" hotplug
check_eq "the guest is content" 0 "$rc"

# what each copy moved, by the ports
facts_from "$OUT/hotplug/result.log" | jq -c '.rounds | map(.before as $b | .after |
	with_entries(.key as $p | .value |= with_entries(.value -= $b[$p][.key])))' >ports.json
diag "$(cat ports.json)"
check "five copies" jq -e --argjson n $BYTES 'length == 5' ports.json
check "each turned round at the drive's port" \
	jq -e --argjson n $BYTES 'all(.drive | .["peer-read"] == $n and .["peer-write"] == $n)' ports.json
check "each went through the GPU's port" \
	jq -e --argjson n $BYTES 'all(.gpu | .["target-read"] == $n and .["target-write"] == $n)' ports.json
check "none went above the switch, nothing was refused" \
	jq -e 'all(.up["upstream-peer-read"] + .up["upstream-peer-write"] == 0 and ([.[] | .refused + .other] | add) == 0)' ports.json
finish
