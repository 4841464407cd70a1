#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: who follows docs/how-to/run-your-program.md to the letter sees what it says
# tags: harness guest
# tier: nightly
# timeout: 300
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/guide.sh"
need_tool cpio flock cc
need_file "$BUILD/guest/7.2/base.cpio" "$BUILD/guest/6.12/base.cpio" "$BUILD/userlib/peerlane"

guide_tree
guide_steps how-to/run-your-program.md 6
check "in strict mode the kernel's refusal is told" grep -q "the kernel refuses DMA between this storage device and this GPU" step5.said
check "the program on two hosts has spoken on both" sh -c 'grep -q "^a: I am a of 2" said && grep -q "^b: I am b of 2" said'
finish
