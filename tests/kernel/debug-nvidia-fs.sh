#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: nvidia-fs, unmodified, under the debug kernel: frees, the disk's DMA, ends of pins, kills and unloads at once, for minutes
# tags: kernel guest third-party debug
# tier: nightly
# timeout: 900
KVER=6.12-debug
. "$TOP/tests/kernel/nvidia-fs.sh"
