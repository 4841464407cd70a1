# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2034 # for who sources this
#
# The command line of the programs in scenarios/.  Source it with TOP, BUILD, and
# PROGRAM set, and a function usage; then
#
#	OPTIONS='--out= --keep -l'	an option with = has a value
#	while option "$@"; do
#		shift "$option_words"
#		case $option in
#		--out) out=$option_value ;;
#		--keep) keep=1 ;;
#		word) name=$option_value ;;	what is no option
#		esac
#	done
#	shift "$option_words"			a "--", if there was one
#
# Options stand before, between or behind the words; --out=VALUE is --out VALUE.
# -h and --help print the usage, --version the version.  All these programs, and tests/run,
# end with
#
#	0	it worked
#	1	it ran, and something failed
#	64	the command line is wrong, or something is missing: nothing ran
#	77	the scenario cannot do its work on this machine, and says why
#
# The functions below look at names that users give: each says in one line what is
# wrong, and ends the program (in $(...): fails).

# shellcheck source=scenarios/lib/machine/topology.sh
. "$TOP/scenarios/lib/machine/topology.sh"
# shellcheck source=scenarios/lib/machine/watch.sh
. "$TOP/scenarios/lib/machine/watch.sh"

# A bundle has other names for the programs that a usage names
say_usage() {
	usage | sed -E "s,scenarios/(run|try|demo|matrix|draw|report)\b,$CALLED\1,g"
}

die() {
	echo "$PROGRAM: $*" >&2
	exit 64
}

# die_usage [TEXT]
die_usage() {
	say_usage >&2
	[ $# -eq 0 ] || die "$@"
	exit 64
}

# room DIR MIB: ends the program when the disk of DIR has less
room() {
	! room_short=$(short_of "$1" "$2") || die "$room_short"
}

option() {
	option_words=0
	[ $# -gt 0 ] || return 1
	option_words=1
	option_value=
	case $1 in
	--) return 1 ;;
	-h | --help) say_usage; exit 0 ;;
	--version) echo "$PROGRAM $(version)"; exit 0 ;;
	-?*) ;;
	*) option=word option_value=$1; return 0 ;;
	esac
	option=${1%%=*}
	case " $OPTIONS " in
	*" $option= "*)
		case $1 in
		*=*) option_value=${1#*=} ;;
		*) option_value=${2-}; option_words=2 ;;
		esac
		[ -n "$option_value" ] || die "$option needs a value"
		;;
	*" $1 "*) ;;
	*) die_usage "unknown option $1" ;;
	esac
}

# --- scenarios ---------------------------------------------------------------

# scenario_file NAME: its description, scenarios/NAME.scn
scenario_file() {
	case $1 in
	*/*) return 1 ;;
	esac
	[ -f "$TOP/scenarios/$1.scn" ] && echo "$TOP/scenarios/$1.scn"
}

scenario_names() {
	for scenario_each in "$TOP"/scenarios/*.scn; do
		scenario_each=${scenario_each##*/}
		echo "${scenario_each%.scn}"
	done | LC_ALL=C sort
}

# scenario_says NAME KEY: what stands behind "# KEY: " in its first lines
scenario_says() {
	sed -n "/^#/!q; s/^# $2: *//p" "$(scenario_file "$1")"
}

args_scenario() {
	scenario_file "$1" >/dev/null || die "no scenario is called \"$1\" (there are: $(
		scenario_names | xargs))"
}

# --- machines, kernels, files ----------------------------------------------------

# args_topology MACHINE: prints it, a file with its whole path; its contents are right
args_topology() {
	args_base=${1%%,*}
	if ! topology_known "$1"; then
		case $1 in
		*/*) die "there is no topology file $args_base" ;;
		esac
		die "no topology is called \"$args_base\" (there are: $(topology_names | xargs))"
	fi
	case $args_base in
	*/*) args_base=$(cd "${args_base%/*}/" && pwd -P)/${args_base##*/} ;;
	esac
	set -- "$args_base${1#"${1%%,*}"}"
	topology devices "$1" >/dev/null || return
	printf '%s\n' "$1"
}
# args_kernel K: there is a guest with this kernel, and it is built
args_kernel() {
	args_oldest=$(sed -n 's/^KERNEL_MIN=//p' "$TOP/versions.mk")
	args_known=" $(sed -n 's/^GUEST_KERNELS=//p; s/^BUILT_KERNELS=//p' \
		"$TOP/versions.mk" | tr ',\n' '  ')$args_oldest "
	args_goal=
	case $1 in
	*-*) args_goal=" ${1##*-}-kernel" ;;
	"$args_oldest") args_goal=" oldest-kernel" ;;
	esac
	case $1 in
	'' | *' '*) ;;
	*)
		case $args_known in
		*" $1 "*)
			[ ! -r "$BUILD/guest/$1/vmlinux" ] ||
				[ ! -r "$BUILD/guest/$1/base.cpio" ] || return 0
			[ ! -e "$TOP/BUNDLE" ] || die "the bundle has no guest with kernel $1; a checkout can build it: make$args_goal"
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
