# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# Compilers for arm64 hosts, of fetch-arm64. Sourced behind lib.sh, inside the root.

ARM64=$(arm64_parts)
[ -d "$ARM64" ] || die "the compilers for arm64 are missing: run make arm64-parts on the host"
# Debian's binutils bring their own libraries
export PATH="$PATH:$ARM64/cross/usr/bin" LD_LIBRARY_PATH="$ARM64/cross/usr/lib/x86_64-linux-gnu"
export PKG_CONFIG=pkg-config PKG_CONFIG_SYSROOT_DIR="$ARM64/sysroot" PKG_CONFIG_PATH=
export PKG_CONFIG_LIBDIR="$ARM64/sysroot/usr/lib/aarch64-linux-gnu/pkgconfig:$ARM64/sysroot/usr/share/pkgconfig"
CROSS=aarch64-linux-gnu-
export CC="ccache ${CROSS}gcc --sysroot=$ARM64/sysroot"
export STRIP="${CROSS}strip"
