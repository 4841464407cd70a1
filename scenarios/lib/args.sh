# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# Names that users give on a command line: each function says in one line what
# is wrong, and fails.  Source it with TOP and BUILD set; the caller has die().

# args_scenario NAME
args_scenario() {
	case $1 in
	*/* | '') ;;
	*) [ ! -f "$TOP/scenarios/$1/run" ] || return 0 ;;
	esac
	die "no scenario is called \"$1\" (there are:$(
		for args_each in "$TOP"/scenarios/*/run; do
			args_each=${args_each%/run}
			printf ' %s' "${args_each##*/}"
		done))"
}

# args_topology T: prints a name in scenarios/topologies as it is, a file with
# its whole path; its contents are right
args_topology() {
	case $1 in
	*/*) args_file=$(cd "${1%/*}/" 2>/dev/null && pwd -P)/${1##*/} ;;
	*) args_file=$TOP/scenarios/topologies/$1.topo ;;
	esac
	if [ ! -r "$args_file" ] || [ -d "$args_file" ]; then
		case $1 in
		*/*) die "there is no topology file $1" ;;
		esac
		die "no topology is called \"$1\" (there are:$(
			for args_each in "$TOP"/scenarios/topologies/*.topo; do
				args_each=${args_each##*/}
				printf ' %s' "${args_each%.topo}"
			done))"
	fi
	awk -v mode=devices -f "$TOP/scenarios/lib/machine/topology.awk" "$args_file" \
		>/dev/null || return
	case $1 in
	*/*) printf '%s\n' "$args_file" ;;
	*) printf '%s\n' "$1" ;;
	esac
}

# args_kernel K: there is a guest with this kernel, and it is built
args_kernel() {
	args_known=" $(sed -n 's/^GUEST_KERNELS=//p; s/^DEBUG_KERNEL=\(.*\)/\1-debug,\1-kcsan/p' \
		"$TOP/versions.mk" | tr ',\n' '  ')"
	args_goal=
	case $1 in
	*-*) args_goal=" ${1##*-}-kernel" ;;
	esac
	case $1 in
	'' | *' '*) ;;
	*)
		case $args_known in
		*" $1 "*)
			[ ! -r "$BUILD/guest/$1/vmlinux" ] ||
				[ ! -r "$BUILD/guest/$1/base.cpio" ] || return 0
			die "the guest with kernel $1 is not built (run: make$args_goal)"
			;;
		esac
		;;
	esac
	die "there is no guest with kernel \"$1\" (there are:${args_known% })"
}

# args_writable FILE: prints its whole path; a file can be written there
args_writable() {
	case $1 in
	/*) args_file=$1 ;;
	*) args_file=$PWD/$1 ;;
	esac
	{ [ ! -d "$args_file" ] && [ -d "${args_file%/*}/" ] &&
		[ -w "${args_file%/*}/" ]; } || die "cannot write $1"
	[ ! -e "$args_file" ] || [ -w "$args_file" ] || die "cannot write $1"
	printf '%s\n' "$args_file"
}
