#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: DKMS itself adds, builds, installs and removes the module peerlane, and passes over a kernel without P2PDMA
# tags: kernel build third-party
# tier: all
# timeout: 600
. "$TOP/scenarios/lib/case.sh"
need_tool gcc make bash modinfo patch

dkms=$PEERLANE_CACHE/third-party/dkms/dkms
[ -f "$dkms" ] || skip "no DKMS: run \`make third-party\`, or copy the program dkms to $dkms"
make -s -C "$TOP/kernel" dkms-source DESTDIR="$OUT/dest" >make.log 2>&1 || diag "$(cat make.log)"
set -- dest/usr/src/peerlane-*
module=peerlane/${1##*/peerlane-}
with() { # KERNEL
	set -- /usr/src/linux-headers-"$1".*-amd64
	echo "${1#/usr/src/linux-headers-}"
}
new=$(with 7.2)
old=$(with 6.12)
# The folders that it has on a host; it does nothing to the host's own
mkdir -p "tree" "modules/$new" "modules/$old"
as_root() { # ACTION [ARGUMENT...]
	action=$1
	shift
	CCACHE_DIR=${CCACHE_DIR-} bash "$dkms" "$action" --dkmstree "$OUT/tree" --sourcetree "$OUT/dest/usr/src" \
		--installtree "$OUT/modules" --no-depmod "$@" </dev/null
}
installed() {
	find modules -name 'peerlane.ko*'
}
modinfo_of() { # FIELD
	modinfo -F "$1" "$(installed)"
}

check "add" as_root add "$module"
check "install for Linux 7.2" as_root install "$module" -k "$new" || diag "$(tail -n 20 tree/peerlane/*/build/make.log)"
check_eq "the module, where depmod looks first" "modules/$new/updates/dkms/peerlane.ko" "$(installed | sed 's/\.ko\..*/.ko/')"
check_eq "of that kernel" "$new" "$(modinfo_of vermagic | cut -d ' ' -f 1)"
status() {
	as_root status "$module"
}
check_eq "it says so" "$module, $new, $(uname -m): installed" "$(status)"
check_fails "Linux 6.12 is passed over: it has no P2PDMA" "BUILD_EXCLUSIVE directive which does not match" as_root install "$module" -k "$old"
check "remove" as_root remove "$module" --all
check_eq "nothing is left" "" "$(installed; status)"
finish
