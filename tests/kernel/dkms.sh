#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the module peerlane builds as DKMS builds it, and says what a kernel or NVIDIA's driver lacks
# tags: kernel build
# tier: all
# timeout: 600
#
# DKMS copies the source, reads dkms.conf, runs its command there, and takes the module from where dkms.conf says.
. "$TOP/scenarios/lib/case.sh"
need_tool gcc make bash modinfo modprobe

make -s -C "$TOP/kernel" dkms-source DESTDIR="$OUT/dest" >make.log 2>&1 || diag "$(cat make.log)"
set -- dest/usr/src/peerlane-*
check_eq "one folder" 1 "$#"
source=$OUT/$1

# as_dkms KDIR: in a copy of the source, with nothing else of the checkout
as_dkms() {
	rm -rf "$OUT/copy"
	cp -R "$source" "$OUT/copy"
	# shellcheck disable=SC2016 # of bash
	(cd "$OUT/copy" && env -i PATH="$PATH" PEERLANE_ROOT="$OUT/host" CCACHE_DIR="${CCACHE_DIR-}" kernel_source_dir="$1" kernelver=6.12-test bash -c '
		. ./dkms.conf && eval "${MAKE[0]}" && cp "${BUILT_MODULE_LOCATION[0]}/${BUILT_MODULE_NAME[0]}.ko" ../built.ko') >build.log 2>&1
}
# shellcheck disable=SC2016 # of bash
check_eq "the folder has the name that DKMS asks for" "${source##*/}" \
	"$(cd "$source" && bash -c '. ./dkms.conf && echo "$PACKAGE_NAME-$PACKAGE_VERSION"')"

set -- /usr/src/linux-headers-7.2.*-amd64
check "it builds for Linux 7.2" as_dkms "$1" || diag "$(tail -n 20 build.log)"
check_eq "it is the module" peerlane "$(modinfo -F name built.ko)"
check_eq "of that kernel" "${1#/usr/src/linux-headers-}" "$(modinfo -F vermagic built.ko | cut -d ' ' -f 1)"
check_eq "and hangs on no driver" "" "$(modinfo -F depends built.ko)"

set -- /usr/src/linux-headers-6.12.*-amd64
refused() { # KDIR: what it says
	as_dkms "$1"
	refused_got=$?
	cat build.log
	return "$refused_got"
}
check_fails "a kernel without P2PDMA: that is said" "^peerlane: this kernel has no CONFIG_PCI_P2PDMA" refused "$1"
check_fails "no headers" "^peerlane: /none has no headers of a kernel" refused /none

# Debian has no kernel with P2PDMA that compares versions of symbols, so one that does is said to have it
cp -R "$1" headers
for each in scripts tools; do
	ln -sfn "$1/$each" "headers/$each"
done
echo CONFIG_PCI_P2PDMA=y >>headers/include/config/auto.conf
kdir=$OUT/headers
symvers() { # FOLDER VERSION: of a driver, below host
	mkdir -p "host/$1"
	for each in get_pages put_pages free_page_table; do
		printf '0x%s\tnvidia_p2p_%s\tnvidia\tEXPORT_SYMBOL\t\n' "$2" "$each"
	done >"host/$1/Module.symvers"
}
# What DKMS asks of a kernel, before it builds
asks() {
	# shellcheck disable=SC2016 # of bash
	(cd "$source" && env -i PATH="$PATH" PEERLANE_ROOT="$OUT/host" kernelver="$1" bash -c '. ./dkms.conf && echo "$BUILD_EXCLUSIVE_CONFIG"')
}
check_eq "versions of symbols, and no driver: DKMS passes over such a kernel" "CONFIG_PCI_P2PDMA !CONFIG_MODVERSIONS" "$(asks 6.12-test)"
check_fails "versions of symbols, and no driver: that is said" "^peerlane: .*no Module.symvers of NVIDIA.s driver" refused "$kdir"
mkdir -p host/usr/src/nvidia-other
printf '0x00000001\tother\tother\tEXPORT_SYMBOL\t\n' >host/usr/src/nvidia-other/Module.symvers
check_eq "DKMS is not told of another module's" "CONFIG_PCI_P2PDMA !CONFIG_MODVERSIONS" "$(asks 6.12-test)"
check_fails "those of another module are none" "^peerlane: .*no Module.symvers of NVIDIA.s driver" refused "$kdir"
version_of() {
	modprobe --dump-modversions built.ko | awk '$2 == "nvidia_p2p_get_pages" { print $1 }'
}
symvers usr/src/nvidia-1 11111111
symvers usr/src/nvidia-2/kernel-open 22222222
touch -d '2001-01-01' host/usr/src/nvidia-2/kernel-open/Module.symvers
check "with a driver it builds" as_dkms "$kdir" || diag "$(tail -n 20 build.log)"
check_eq "and takes that driver only, the newest" 0x11111111 "$(version_of)"
# What DKMS keeps of the driver that it built for this kernel comes first, and that for another kernel is none of ours
symvers var/lib/dkms/nvidia/580.1/6.12-test/x86_64/module 33333333
symvers var/lib/dkms/nvidia/580.1/6.99-other/x86_64/module 44444444
touch -d '2001-01-01' host/var/lib/dkms/nvidia/580.1/6.12-test/x86_64/module/Module.symvers
check "with a driver that DKMS built" as_dkms "$kdir" || diag "$(tail -n 20 build.log)"
check_eq "it takes the one for this kernel" 0x33333333 "$(version_of)"
check_eq "DKMS builds for this kernel" "CONFIG_PCI_P2PDMA" "$(asks 6.12-test)"
rm -r host/usr/src/nvidia-*
check_eq "… and not for another, as there is no driver for it" "CONFIG_PCI_P2PDMA !CONFIG_MODVERSIONS" "$(asks 6.13-test)"
# driver LICENSE: the host has one
driver() {
	mkdir -p host/lib/modules/6.12/updates/dkms
	printf 'char license[] __attribute__((section(".modinfo"))) = "license=%s";\n' "$1" >nvidia.c
	gcc -c -o host/lib/modules/6.12/updates/dkms/nvidia.ko nvidia.c
}
# Enough of a kernel to come so far
mkdir -p light/include/config
echo CONFIG_PCI_P2PDMA=y >light/include/config/auto.conf
driver "Dual MIT/GPL"
refused "$OUT/light" >said
check "a driver of the open modules is not spoken of" sh -c 'grep -q "no headers" said && ! grep -q "open modules: with it" said'
driver NVIDIA
refused "$OUT/light" >said
check "of the proprietary one it says that it is of no use" grep -q "^peerlane: .*/nvidia.ko is not one of the open modules" said
finish
