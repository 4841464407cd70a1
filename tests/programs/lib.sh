# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# Programs of others, built from the source that somebody put into the cache, run in guests.  A case sources this file.
#
#	program_source NAME FILE	$source; skips when its FILE is not there
#	program_cuda			$cuda, a folder as of a toolkit: its headers, our libraries
#	program_build NAME FUNCTION [FILE]	FUNCTION, of FILE or the case, builds in a copy of $source, its working
#					folder, and installs below $tree; done anew when the source or FUNCTION changed
#	program_hosts GUEST-SCRIPT MACHINE [FILE…]	a case of several hosts on a wire; hosts_boot boots them
#
# What is built is $BUILD/programs/NAME, and stays for the next run.

. "$TOP/scenarios/lib/case.sh"
. "$TOP/scenarios/lib/machine/vm.sh"

programs=$BUILD/programs

program_source() {
	source=$PEERLANE_CACHE/third-party/$1
	[ -f "$source/$2" ] || skip "no source of $1: copy it to $source"
}

# NVIDIA's headers are not ours to ship; nvml.h and cufile.h are in no toolkit of ours, so they are our own
program_cuda() {
	cuda=$programs/cuda
	toolkit=${CUDA_HOME:-/usr/local/cuda}
	[ -f "$toolkit/include/cuda_runtime.h" ] || toolkit=/usr/local/cuda # where images/build/in-root puts the host's
	[ -f "$toolkit/include/cuda_runtime.h" ] ||
		skip "no CUDA headers: neither CUDA_HOME nor /usr/local/cuda of this machine has include/cuda_runtime.h"
	major=$(sed -n 's/^#define CUDART_VERSION  *\([0-9]*\)[0-9]\{3\}$/\1/p' "$toolkit/include/cuda_runtime_api.h")
	need_file "$BUILD/userlib/libcudart.so.$major" "$BUILD/userlib/libcuda.so" "$BUILD/userlib/libnvidia-ml.so" \
		"$BUILD/userlib/libcufile.so.0"
	mkdir -p "$cuda/include" "$cuda/lib64"
	ln -sf "$toolkit"/include/* "$TOP/userlib/nvml/nvml.h" "$TOP/userlib/nvml/nvml_absent.h" \
		"$TOP/userlib/cufile/cufile.h" "$cuda/include/"
	ln -sf "$BUILD/userlib/libcuda.so" "$BUILD/userlib/libnvidia-ml.so" "$cuda/lib64/"
	ln -sf "$BUILD/userlib/libcudart.so.$major" "$cuda/lib64/libcudart.so"
	ln -sf "$BUILD/userlib/libcufile.so.0" "$cuda/lib64/libcufile.so"
}

program_build() {
	tree=$programs/$1/tree
	mkdir -p "$programs/$1"
	exec 8>"$programs/$1/lock"
	flock 8
	built_key=$({
		cd "$source" && find . -type f -printf '%p %s %T@\n' | LC_ALL=C sort
		sed -n "/^$2() {/,/^}/p" "${3:-$0}"
	} | sha256sum)
	if [ "$(cat "$programs/$1/key" 2>/dev/null)" != "$built_key" ]; then
		rm -rf "$programs/$1/work" "$tree" "$programs/$1/key"
		cp -r "$source" "$programs/$1/work"
		(set -e; cd "$programs/$1/work"; "$2") >"$programs/$1/log" 2>&1
		# shellcheck disable=SC2181 # as a condition it would go on after what fails
		if [ $? -ne 0 ]; then
			fail "$1 builds with our libraries" "the end of $programs/$1/log:
$(tail -n 20 "$programs/$1/log")"
			finish
		fi
		rm -rf "$programs/$1/work"
		echo "$built_key" >"$programs/$1/key"
	fi
	exec 8>&-
	pass "$1 builds with our libraries"
}

program_hosts() { # GUEST-SCRIPT MACHINE [FILE…]
	. "$TOP/scenarios/lib/scenario.sh"
	SC_SOURCE=$BUILD/out/data SC_TOPOLOGY=$2 SC_KERNEL=7.2 SC_GUEST=$TOP/tests/programs/guest/$1
	. "$TOP/scenarios/lib/machine/hosts.sh"
	need_tool jq cpio flock make
	sc_build
	shift 2
	hosts_case "$@"
}
