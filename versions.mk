# SPDX-License-Identifier: MIT
# Every pin of the build. Read by make and by sh, so: VAR=value, no spaces around the sign, no expansions.
# A pin that has vanished from the mirror falls forward inside its series, with a warning (images/build/fetch).
# Packages that are not named here are those that the mirror has. With an archive of the past as DEBIAN_MIRROR, all are those of its
# time (images/README.md).
# Any of these can be overridden for one run: PEERLANE_PIN_<VAR>=value.

SUITE=trixie
BACKPORTS_SUITE=trixie-backports
OLD_SUITE=bookworm

# QEMU: Debian's source package. The checksums are those of its .dsc, .orig.tar.xz and .debian.tar.xz.
QEMU_SERIES=10.0
QEMU_VERSION=1:10.0.13+ds-0+deb13u1
QEMU_DSC_SHA256=a426c892e5369058c3423816c8625bc8010bb5a58ece57261f62b64ee4d765ad
QEMU_ORIG_SHA256=6a0888e806c2ffc0c5f0733e974f9aea55491950d3c47c98669c8b236dde59ae
QEMU_DEBIAN_SHA256=da73c092f5684c551b0334d675eb16a3dec91e1edea94759cfb1102fa4a0364e

# perftest: Debian's source package, built here with CUDA support. The checksums of its .orig.tar.gz and .debian.tar.xz.
PERFTEST_SERIES=25.01
PERFTEST_VERSION=25.01.0+0.80-1
PERFTEST_ORIG_SHA256=54e86b131f0b06862b8b9cd692739737295463cfef467bdda5f5aa3dae8c5b05
PERFTEST_DEBIAN_SHA256=432a44f28fd3f7b155cc2e1fb63648a1b831cf44d4b665ff807692d73304f365

# Guest kernels: release (uname -r) and package version. 7.2 has P2PDMA, 6.12 has not.
GUEST_KERNELS=7.2,6.12
K7_2_RELEASE=7.2.12+deb13-amd64
K7_2_VERSION=7.2.12-1~bpo13+1
K7_2_BINARY_SHA256=0d916c7f1310a7cb0567f235785d1c4511d894eb95e9810a2bc1f67e7ec18c2f
K7_2_MODULES_SHA256=abd8aad34e82ae541ec596eafa9ac84bbcddf943c5de051d330516c3dff395d6
K6_12_RELEASE=6.12.107+deb13-amd64
K6_12_VERSION=6.12.107-1
K6_12_IMAGE_SHA256=7794643cf4560de2a7e3b069e8ca8511ad2a568d652ea285f0fe051f79bc9e99

# Kernels that are built here, only when asked for (make debug-kernel, kcsan-kernel, p2pdma-kernel, 6.12-debug-kernel): the guest kernel
# that each stands in for, in whose version Debian's package linux-source-7.2 or -6.12 is fetched, a hyphen, and what is different
# (images/guest/kernel-debug.config and so on). The checksums are those of the packages.
BUILT_KERNELS=7.2-debug,7.2-kcsan,6.12-p2pdma,6.12-debug
BUILT_7_2_SHA256=73ca6c22599ba411ab3179642d33501ca2c90174e13c3c8d86e996ea1cbf2a8f
BUILT_6_12_SHA256=775b9ef84d7fa7927ccebfec33fbbe9aeb2482ebf9a92c771aafd33fb6e2ee27

# Headers only: the oldest kernel that the modules support.
HEADER_KERNELS=7.2,6.12,6.1
K6_1_RELEASE=6.1.0-50-amd64
K6_1_VERSION=6.1.176-1

# The kernels that kernel/ supports, oldest and newest. A guest with the oldest is made only when asked for (make oldest-kernel),
# from Debian's package of this checksum.
KERNEL_MIN=6.1
KERNEL_MAX=7.2
OLDEST_IMAGE_SHA256=7b5597492a0a65aee61985a492e6bcc3f2cde830072a0e3b3d8c7e1b90279bd3

# Used only where the host's own keyring is missing or too old: path in the mirror's pool, and checksum.
KEYRING_DEB=pool/main/d/debian-archive-keyring/debian-archive-keyring_2025.1_all.deb
KEYRING_SHA256=9ea7778e443144ca490668737a8ab22dd3e748bb99e805e22ec055abeb3c7fac
