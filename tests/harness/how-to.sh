#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the shell blocks of these how-tos work as printed, and print what the pages say
# tags: harness guest rdma
# tier: nightly
# timeout: 1500
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/guide.sh"
need_tool cpio flock cc
need_file "$BUILD/guest/7.2/base.cpio" "$BUILD/guest/6.12/base.cpio" "$BUILD/userlib/peerlane"

guide_tree
guide_steps how-to/choose-a-topology.md 3
guide_steps how-to/find-out-why-it-is-slow.md 1
guide_steps how-to/measure-rdma.md 1
guide_steps how-to/rdma.md 1
guide_steps how-to/run-a-cuda-program.md 1
finish
