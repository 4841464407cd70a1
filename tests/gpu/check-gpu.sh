#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: file -> real NVIDIA GPU -> file with our libcufile.so.0 (bounce and cache paths)
# tags: gpu
# tier: all
# timeout: 300
#
#   O=DIR       a build to use when build/userlib has none
#   DIR=DIR     where the test files go      (TMPDIR or /var/tmp)
#   LIB=FILE    test this libcufile.so.0 instead, NVIDIA's for example
set -u

top=$(CDPATH='' cd "$(dirname "$0")/../.." && pwd)
. "$top/tests/gpu/lib.sh"

need_gpu
find_program cufile-gpu
echo "# sha256 $(sha256sum "${LIB:-$lib}" | cut -c1-16) $(uname -sr)"
"$program" --lib "${LIB:-$lib}" --dir "${DIR:-${TMPDIR:-/var/tmp}}" "$@"
