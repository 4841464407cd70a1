#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: real NVIDIA GPU: what nvidia-uvm answers who wants its memory mapped
# tags: gpu
# tier: all
# timeout: 300
#
# Each call, what it is answered, and what wrong ones are.  Then libcufile.so.0 maps
# such memory, or stages it and says why.
#
#   O=DIR       a build to use when build/userlib has none
#   DIR=DIR     where the test file goes; its file system must have O_DIRECT
#                                            (TMPDIR or /var/tmp)
set -u
. "$(dirname "$0")/lib.sh"

for dev in nvidiactl nvidia-uvm; do
	[ -e /dev/$dev ] || skip "no NVIDIA GPU here: there is no /dev/$dev"
done
build cufile-uvm
echo "# $(uname -sr), P2PDMA: $(zgrep -h 'CONFIG_PCI_P2PDMA' /proc/config.gz \
	"/boot/config-$(uname -r)" 2>/dev/null || echo 'not told')"
sed 's/^/# /' /proc/driver/nvidia/version 2>/dev/null
sed -n '/^RegistryDwords:/s/^/# /p' /proc/driver/nvidia/params 2>/dev/null
log=$(mktemp "${TMPDIR:-/tmp}/peerlane-uvm-log.XXXXXX") || exit 1
"$test" --lib "$lib" --dir "$DIR" --log "$log"
status=$?
rm -f "$log"
exit $status
