#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: who follows docs/tutorial-connectx.md to the letter, outside of the build root, sees what it says
# tags: harness guest rdma
# tier: nightly
# timeout: 700
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/guide.sh"
need_tool cpio flock jq
need_file "$BUILD/guest/7.2/mlx5.cpio" "$BUILD/userlib/peerlane"

guide_tree
guide_steps tutorial-connectx.md 4
finish
