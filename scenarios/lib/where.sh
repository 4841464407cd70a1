# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2034 # for who sources this
#
# Where things are: in a checkout, or in a bundle (images/bundle/make-bundle), which is a
# folder with the file BUNDLE in it.  Programs source it with TOP and PROGRAM set:
#
#	BUILD		what was built: the emulator, guests, libraries; read-only in a bundle
#	WORK		where results go
#	PAGE		the demo's page
#	PEERLANE_CACHE	where snapshots of machines are kept
#	inside "$@"	from here on the tools of the build root are there: outside of it
#			the program is started once more, inside.  A bundle brings its tools.
#	ENTER		what to put before a command that needs them, or nothing:
#			${ENTER:+"$ENTER"} sh script
#			There the user's files are not to be seen: one can be its standard input
#	enter		makes the build root where there is none; ENTER then prints nothing itself
#	CALLED		before the names of these programs: CALLEDrun is what the user calls
#	PROGRAM		as the user calls it
#	version		of the checkout or the bundle

# where_bundle: finds a folder to write to, and sets the tools up
where_bundle() {
	# shellcheck disable=SC2123 # that is what it is for
	PATH=$TOP/libexec/tools
	if [ -n "${PEERLANE_CACHE-}" ]; then
		where_folder "$PEERLANE_CACHE" || exit 64
	else
		where_tried=
		for where_each in ${XDG_CACHE_HOME:+"$XDG_CACHE_HOME/peerlane"} ${HOME:+"$HOME/.cache/peerlane"} \
			"${TMPDIR:-/tmp}/peerlane-$(id -u)"; do
			where_said=$(where_folder "$where_each" 2>&1) && break
			where_tried="$where_tried
$where_said"
			where_each=
		done
		[ -n "$where_each" ] || {
			echo "$PROGRAM: no folder for results and snapshots; set PEERLANE_CACHE to one with 1 GiB of room:$where_tried" >&2
			exit 64
		}
		PEERLANE_CACHE=$where_each
	fi
	PEERLANE_CACHE=$(cd "$PEERLANE_CACHE" && pwd -P) || exit 64
	WORK=$PEERLANE_CACHE/out
	PAGE=$PEERLANE_CACHE/report.html
	: "${VM_SNAPSHOTS_MIB:=4096}"
	PEERLANE_IN_ROOT=1
	LC_ALL=C.UTF-8
	LOCPATH=$TOP/libexec/locale
	MKE2FS_CONFIG=$TOP/libexec/mke2fs.conf
	: "${TMPDIR:=$PEERLANE_CACHE}"
	export PATH PEERLANE_CACHE VM_SNAPSHOTS_MIB PEERLANE_IN_ROOT LC_ALL LOCPATH MKE2FS_CONFIG TMPDIR
	unset LANG LANGUAGE CDPATH ENV || :
}

# where_folder FOLDER: it is there, and can be written to; in /tmp, it is ours
where_folder() {
	case $1 in
	*[[:space:]:,]*) where_why="its name has a blank, a colon or a comma" ;;
	/*)
		if ! mkdir -p "$1" 2>/dev/null; then
			where_why="it cannot be made"
		elif [ "${1%/*}" = "${TMPDIR:-/tmp}" ] && { [ -L "$1" ] || [ "$(stat -c %u "$1")" != "$(id -u)" ]; }; then
			# there anybody could have made it
			where_why="it belongs to somebody else"
		elif ! where_probe=$(mktemp -p "$1" 2>/dev/null); then
			where_why="it cannot be written to"
		else
			rm -f "$where_probe"
			return 0
		fi
		;;
	*) where_why="its name does not begin with a /" ;;
	esac
	echo "$PROGRAM: $1: $where_why" >&2
	return 1
}

inside() {
	[ -z "$ENTER" ] || exec "$ENTER" "$TOP/scenarios/${PROGRAM##*/}" "$@"
}

enter() {
	[ -z "$ENTER" ] || "$ENTER" true >&2 || exit 64
}

version() {
	if [ -f "$TOP/BUNDLE" ]; then
		cat "$TOP/BUNDLE"
	else
		"$TOP/images/build/version" --commit
	fi
}

BUILD=${BUILD:-$TOP/build}
WORK=$BUILD/out
PAGE=$BUILD/report.html
CALLED=scenarios/
if [ -f "$TOP/BUNDLE" ]; then
	BUILD=$TOP/build
	CALLED=peerlane-
	case $PROGRAM in
	scenarios/*) PROGRAM=$CALLED${PROGRAM#scenarios/} ;;
	esac
	where_bundle
fi
ENTER=
[ -n "${PEERLANE_IN_ROOT-}" ] || ENTER=$TOP/images/build/in-root
export TOP BUILD WORK
