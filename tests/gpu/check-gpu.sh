#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: file -> real NVIDIA GPU -> file with our libcufile.so.0 (bounce path)
# tags: gpu
# tier: all
# timeout: 300
#
#   O=DIR       a build to use when build/userlib has none
#   DIR=DIR     where the test files go      (TMPDIR or /var/tmp)
#   SECONDS_EACH=N  time for each speed      (1)
#   LIB=FILE    test this libcufile.so.0 instead, NVIDIA's for example
set -u
. "$(dirname "$0")/lib.sh"

if [ ! -e /dev/nvidiactl ] && [ ! -e /dev/dxg ]; then
	skip "no NVIDIA GPU here: there is no /dev/nvidiactl"
fi
build cufile-gpu
echo "# sha256 $(sha256sum "${LIB:-$lib}" | cut -c1-16) $(uname -sr)"
"$test" --lib "${LIB:-$lib}" --dir "$DIR" --seconds "${SECONDS_EACH:-1}" "$@"
