#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: real NVIDIA GPU: what nvidia-uvm answers who wants its memory mapped
# tags: gpu
# tier: all
# timeout: 300
#
# Each call, what it is answered, and what wrong ones are.  Then libcufile.so.0 maps
# such memory, with PEERLANE_NVIDIA_UVM=1, or stages it and says why.
#
#   O=DIR       a build to use when build/userlib has none
#   DIR=DIR     where the test file goes; its file system must have O_DIRECT
#                                            (TMPDIR or /var/tmp)
set -u

top=$(CDPATH='' cd "$(dirname "$0")/../.." && pwd)
. "$top/tests/gpu/lib.sh"

need_gpu
[ -e /dev/nvidia-uvm ] || skip "no NVIDIA GPU here: there is no /dev/nvidia-uvm"
find_program cufile-uvm
echo "# $(uname -sr), P2PDMA: $(zgrep -h 'CONFIG_PCI_P2PDMA' /proc/config.gz \
	"/boot/config-$(uname -r)" 2>/dev/null || echo 'not told')"
sed 's/^/# /' /proc/driver/nvidia/version 2>/dev/null
sed -n '/^RegistryDwords:/s/^/# /p' /proc/driver/nvidia/params 2>/dev/null
log=$(mktemp "${TMPDIR:-/tmp}/peerlane-uvm-log.XXXXXX") || exit 1
"$program" --lib "$lib" --dir "${DIR:-${TMPDIR:-/var/tmp}}" --log "$log"
status=$?
rm -f "$log"
exit $status
