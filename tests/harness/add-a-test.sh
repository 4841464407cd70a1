#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: who follows docs/how-to/add-a-test.md to the letter has two cases that pass
# tags: harness guest
# tier: all
# timeout: 180
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/guide.sh"
need_tool cpio flock
need_file "$BUILD/guest/7.2/base.cpio" "$BUILD/userlib/peerlane"

guide_tree
guide_steps how-to/add-a-test.md 2
check "the runner has run both" grep -q '^2 passed, 0 failed, 0 skipped' said
finish
