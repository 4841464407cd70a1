#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: NVIDIA's NCCL comes up between two hosts, over sockets and over rxe0, and stops at its first kernel, which it names
# tags: programs guest cuda rdma third-party
# tier: nightly
# timeout: 900
. "$TOP/tests/programs/lib.sh"

program_cuda
nccl=$(readlink -f "$toolkit/lib64/libnccl.so.2" 2>/dev/null)
[ -f "$nccl" ] || skip "no NCCL: $toolkit has no lib64/libnccl.so.2"
check "a program builds with NCCL and our runtime" cc -O1 -Wall -Wextra -I"$cuda/include" -o nccl-rank "$TOP/tests/programs/nccl.c" \
	"$nccl" "$cuda/lib64/libcudart.so" -Wl,-rpath-link,"$BUILD/userlib"
program_hosts nccl two-hosts-rxe nccl-rank
mv case/nccl-rank case/nccl
strip --strip-debug -o case/libnccl.so.2 "$nccl"
echo cxx >>case/extras
SC_TOPOLOGY=two-hosts-rxe,memory=2G
hosts_boot 700 2
finish
