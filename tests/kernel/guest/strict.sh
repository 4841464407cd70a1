# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# nvidia_p2p_* as NVIDIA's driver has them: no put_pages() by others, no calls from the callback.

# be_strict: what it cannot do is refused, and logged
be_strict() {
	echo 1 >/sys/module/peerlane_gpu/parameters/p2p_strict
}

# nothing_asked: none of it was asked for since the guest has started
nothing_asked() {
	grep -qx Y /sys/module/peerlane_gpu/parameters/p2p_strict || return
	! dmesg | grep "with NVIDIA's driver"
}
