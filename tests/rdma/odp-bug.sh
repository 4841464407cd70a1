#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: stock soft-RoCE moves wrong bytes with IBV_ACCESS_ON_DEMAND, which is why it is never used
# tags: guest rdma
# tier: all
# timeout: 90
# docs/explanation/soft-roce-odp.md explains the kernel's bug.  The case passes where
# the bug is and where it has been mended, and says which; it fails when plain
# registration is wrong, or when on-demand paging fails in a way that is not the one described.

. "$TOP/scenarios/lib/case.sh"
. "$TOP/scenarios/lib/machine/vm.sh"
need_tool cc cpio awk
need_file "$QEMU" "$BUILD/guest/7.2/base.cpio" "$BUILD/guest/7.2/rdma.cpio"

mkdir -p case
cc -O2 -g -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror \
	-o case/odp-bug "$TOP/tests/rdma/odp-bug.c" -libverbs || exit 1
cat >case/run <<'END'
#!/bin/sh
ip link set eth0 mtu 9000 up && ip address add 10.0.0.1/24 dev eth0 &&
	rdma link add rxe0 type rxe netdev eth0 || exit 1
/case/odp-bug | sed 's/^/@odp /'
END
chmod +x case/run
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
	pass "$release has it mended: on-demand paging is right here (docs/explanation/soft-roce-odp.md can say so)"
	;;
'refused ')
	pass "$release does not offer on-demand paging on soft-RoCE"
	;;
'as-predicted right ')
	pass "$release has the bug: completions say success and the bytes are where two missing additions put them"
	check_eq "only with the greatest MTU at a page's start do both additions add nothing" \
		'ondemand 4096 0' "$(awk '$4 == "right" && $1 == "ondemand" { print $1, $2, $3 }' odp)"
	;;
*)
	fail "on-demand paging is right, refused, or wrong in the way that is described" "$(cat odp)"
	;;
esac
finish
