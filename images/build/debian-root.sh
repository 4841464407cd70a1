# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154
# Makes a Debian root by mmdebstrap, whole or not at all. Sourced on the host behind lib.sh, with $mode set, $FETCHED there, and a lock held.

remove_tree() {
	[ -e "$1" ] || return 0
	if grep -qF " $1/" /proc/self/mounts; then
		die "something is mounted below $1: unmount it first (grep $1 /proc/mounts)"
	fi
	case $mode in
	unshare) unshare --user --map-auto --map-root-user -- rm -rf --one-file-system "$1" ;;
	sudo) sudo -n rm -rf --one-file-system "$1" ;;
	*) rm -rf --one-file-system "$1" ;;
	esac
}

# debian_root LABEL LOG ROOT SUITE SOURCES ARG...: ROOT and then ROOT.mode are there; ARG are mmdebstrap's
debian_root() {
	dr_label=$1 dr_log=$2 dr_root=$3 dr_suite=$4 dr_sources=$5
	shift 5
	# What an interrupted run has left; nobody else uses it, the lock is ours.
	remove_tree "$dr_root.partial"
	remove_tree "$dr_root"
	mkdir -p "${dr_log%/*}"
	set -- --mode=root --architectures=amd64 --keyring="$KEYRING" --aptopt='Acquire::Languages "none"' --aptopt='Acquire::Retries "3"' \
		--aptopt='APT::Install-Recommends "false"' --dpkgopt=force-unsafe-io "$@"
	while IFS= read -r dr_opt; do
		set -- "$@" --aptopt="$dr_opt"
	done <"$FETCHED/aptopts"
	# shellcheck disable=SC2016
	set -- "$@" --customize-hook='mkdir -p "$1/dev" "$1/proc" "$1/sys" "$1/tmp"; rm -f "$1/etc/resolv.conf"'
	# In namespaces of its own: killed in the middle it leaves neither a process nor a mount behind. Without root, in a
	# user namespace with in-root's mapping, so that root there owns the files.
	dr_apart="unshare --mount --pid --fork --kill-child"
	case $mode in
	unshare) dr_apart="$dr_apart --user --map-auto --map-root-user" ;;
	sudo) dr_apart="sudo -n $dr_apart" ;;
	esac
	# shellcheck disable=SC2086
	step "$dr_label" "$dr_log" $dr_apart -- env PATH="$PATH:/usr/sbin:/sbin" PEERLANE_CACHE="$PEERLANE_CACHE" SOURCE_DATE_EPOCH=1700000000 \
		TMPDIR=/tmp sh "$FETCHED/mmdebstrap" "$@" "$dr_suite" "$dr_root.partial" "$dr_sources"
	mv "$dr_root.partial" "$dr_root" 2>/dev/null || case $mode in
	unshare) unshare --user --map-auto --map-root-user -- mv "$dr_root.partial" "$dr_root" ;;
	sudo) sudo -n mv "$dr_root.partial" "$dr_root" ;;
	esac
	echo "$mode" >"$dr_root.mode.new"
	mv "$dr_root.mode.new" "$dr_root.mode"
}
