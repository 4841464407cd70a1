#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: documentation of the kernel's bug: on-demand paging of stock soft-RoCE is right, refused, or wrong just as described
# tags: guest rdma
# tier: all
# timeout: 90
# docs/explanation/soft-roce-odp.md explains the bug. This is a check of that page, not of
# Peerlane, which never asks for on-demand paging: the case passes where the bug is, where it
# has been mended and where on-demand paging is not offered, and says which. It fails when
# on-demand paging is wrong in another way than the page describes, or plain registration is wrong.

. "$TOP/scenarios/lib/case.sh"
. "$TOP/scenarios/lib/machine/vm.sh"
need_tool cc cpio awk
need_file "$QEMU" "$BUILD/guest/7.2/base.cpio" "$BUILD/guest/7.2/rdma.cpio"

mkdir -p case
cc -O2 -g -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror \
	-o case/odp-bug "$TOP/userlib/core/test/odp_bug.c" -libverbs || exit 1
cp "$TOP/tests/rdma/guest/odp-bug" case/run
echo rdma >case/extras
printf '%s\n' virtio_net rdma_rxe ib_uverbs >case/modules
VM_TRACE=''
vm_run guest no-drive 7.2 "$OUT/case" 60 -netdev hubport,id=net,hubid=0 \
	-device virtio-net-pci,netdev=net,romfile=,host_mtu=9000
check_eq "the guest ended well, with nothing bad on its console" 0 "$?"
tr -d '\r' <guest/result.log | sed -n 's/^@odp //p' >odp
sed 's/^/# /' odp

check_eq "plain registration is right with every MTU and offset" \
	'plain 1024 0 right
plain 1024 100 right
plain 4096 100 right
plain 4096 0 right' "$(grep '^plain' odp)"
release=$(cat "$BUILD/guest/7.2/release")
case $(awk '$1 == "ondemand" { print $4 }' odp | sort -u | tr '\n' ' ') in
'right ')
	pass "(documentation) $release has it mended: on-demand paging is right here, and soft-roce-odp.md can say so"
	;;
'refused ')
	pass "(documentation) $release does not offer on-demand paging on soft-RoCE"
	;;
'as-predicted right ')
	pass "(documentation) $release has the bug: completions say success and the bytes are where two missing additions put them"
	check_eq "only with the greatest MTU at a page's start do both additions add nothing" \
		'ondemand 4096 0' "$(awk '$4 == "right" && $1 == "ondemand" { print $1, $2, $3 }' odp)"
	;;
*)
	fail "on-demand paging is right, refused, or wrong in the way that is described" "$(cat odp)"
	;;
esac
finish
