#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: in a container (namespaces, overlayfs root, one device node, no capabilities, a filter of system calls) data goes directly
# tags: guest cufile p2p
# tier: all
# timeout: 480
#
# As Docker starts it with --device /dev/peerlane-gpu0 and a volume; its filter refuses io_uring since 2023.
. "$TOP/scenarios/lib/case.sh"
. "$TOP/scenarios/lib/machine/vm.sh"

mkdir -p inside.case/lib
cp "$TOP/scenarios/lib/guest/guest.sh" inside.case/lib/
check "the launcher compiles" cc -Wall -Wextra -Werror -O1 -o inside.case/container "$TOP/userlib/cufile/test/container.c"
echo stack >inside.case/extras
cp "$TOP/tests/cufile/guest/container-start" inside.case/start
cp "$TOP/tests/cufile/guest/container" inside.case/run
chmod +x inside.case/start inside.case/run
echo peerlane_gpu >inside.case/modules
truncate -s 256M "$OUT/disk0"
vm_image disk0 "$OUT/disk0"
vm_run inside "$TOP/scenarios/topologies/same-switch.topo" 7.2 "$OUT/inside.case" 420
status=$?
ktap_from inside/result.log
check_eq "the guest ended well" 0 "$status"
finish
