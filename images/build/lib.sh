# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034
# Shared by the scripts in images/: where things are, pins, keys, locks, progress. Sourced with TOP set.

: "${TOP:?}"
if [ -z "${PEERLANE_CACHE-}" ]; then
	PEERLANE_CACHE=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/peerlane
fi
case $PEERLANE_CACHE in
/*) ;;
*) PEERLANE_CACHE=$PWD/$PEERLANE_CACHE ;;
esac
export PEERLANE_CACHE
BUILD=$TOP/build

say() { printf '%s\n' "$*" >&2; }
die() {
	say "peerlane: $*"
	exit 1
}

# What a variable may be is checked on the host, once: a mistake in one changes nothing unnoticed.
check_settings() {
	case $TOP$PEERLANE_CACHE in
	*[[:space:]:]*) die "neither the path of this checkout nor PEERLANE_CACHE may have a blank or a colon in it: $TOP $PEERLANE_CACHE" ;;
	esac
	case ${PEERLANE_MODE-} in
	'' | root | unshare | sudo) ;;
	*) die "PEERLANE_MODE is root, unshare or sudo, not \"$PEERLANE_MODE\"" ;;
	esac
	case ${PEERLANE_ACCEL-} in
	'' | tcg | tcg,* | kvm | kvm,*) ;;
	*) die "PEERLANE_ACCEL is tcg or kvm, not \"$PEERLANE_ACCEL\"" ;;
	esac
	for cs_name in $(env | sed -n 's/^PEERLANE_PIN_\([A-Za-z0-9_]*\)=.*/\1/p'); do
		grep -q "^$cs_name=" "$TOP/versions.mk" ||
			die "PEERLANE_PIN_$cs_name: versions.mk has no $cs_name"
	done
}

# room FOLDER MIB WHAT: ends the program when the disk of FOLDER has less room than WHAT needs
room() {
	room_free=$(df -Pk "$1" | awk 'NR == 2 { print int($4 / 1024) }')
	[ "${room_free:-$2}" -ge "$2" ] ||
		die "$1 has $room_free MiB of disk left, and $3 needs about $2: make room there, or set PEERLANE_CACHE to a folder on another disk"
}

# cause LOG: what the program said last about its failure, as ": TEXT", or nothing
cause() {
	sed -n '/No space left on device/s/.*/: No space left on device/p; s/^E: /: /p' "$1" | tail -n 1
}

# Reads versions.mk into variables; PEERLANE_PIN_<VAR> overrides one of them for this run.
load_pins() {
	while IFS= read -r pin_line; do
		case $pin_line in
		'' | '#'*) continue ;;
		esac
		pin_name=${pin_line%%=*}
		eval "pin_value=\${PEERLANE_PIN_$pin_name-}"
		[ -n "$pin_value" ] || pin_value=${pin_line#*=}
		eval "$pin_name=\$pin_value"
	done <"$TOP/versions.mk"
}

# The pins in force, one per line: what the keys are made of. Those of what is fetched only when asked for are no part.
print_pins() {
	sed '/^#/d;/^$/d;/^BUILT_/d;/^OLDEST_/d;s/=.*//' "$TOP/versions.mk" | while IFS= read -r pin_name; do
		eval "printf '%s=%s\n' \"\$pin_name\" \"\$$pin_name\""
	done
}

hash_stdin() { sha256sum | cut -c1-16; }

# Prints one key for the contents (and names) of files and folders.
hash_files() {
	for hash_path; do
		if [ -d "$hash_path" ]; then
			(cd "$hash_path" && find . -type f ! -name '*~' ! -name '.*.sw?' -print0 | LC_ALL=C sort -z |
				xargs -0r sha256sum --)
		elif [ -e "$hash_path" ]; then
			sha256sum <"$hash_path"
		else
			echo absent
		fi
	done | hash_stdin
}

# The formats stand for the scripts: raise one when its script comes to make something else from the same pins.
FETCH_FORMAT=1
ROOT_FORMAT=1
fetch_key() { { echo "fetch $FETCH_FORMAT"; print_pins; } | hash_stdin; }
root_key() {
	{ echo "fetch $FETCH_FORMAT root $ROOT_FORMAT"; print_pins; cat "$TOP/images/build/packages.list"; } | hash_stdin
}

# Where the two first stages live. PEERLANE_ROOT_KEY and PEERLANE_FETCH_KEY spare the hashing inside the root.
find_stages() {
	if [ -z "${PEERLANE_ROOT_KEY-}" ]; then
		check_settings
		load_pins
		PEERLANE_FETCH_KEY=$(fetch_key)
		PEERLANE_ROOT_KEY=$(root_key)
	fi
	FETCHED=$PEERLANE_CACHE/fetch-$PEERLANE_FETCH_KEY
	ROOT=$PEERLANE_CACHE/root-$PEERLANE_ROOT_KEY
}

# Inside the root: the versions in force (the pins, or what they fell forward to).
load_resolved() {
	find_stages
	# shellcheck disable=SC1091
	. "$FETCHED/resolved"
}

# kvar 7.2 RELEASE -> value of K7_2_RELEASE
kvar() { eval "printf '%s\n' \"\${K$(printf %s "$1" | tr . _)_$2-}\""; }

# kernel_source 7.2: where the source of this guest kernel is, or belongs
kernel_source() { echo "$PEERLANE_CACHE/kernel-source-$(kvar "$1" VERSION)"; }

# Roots of other user lands (lands.list): their names, the line of one, where it is or belongs
land_names() { sed '/^#/d; s/ .*//' "$TOP/images/build/lands.list"; }
land_line() { sed -n "/^$1 /p" "$TOP/images/build/lands.list"; }
land_root() { echo "$PEERLANE_CACHE/land-$1-$({ echo "land 1 $PEERLANE_FETCH_KEY"; land_line "$1"; } | hash_stdin)"; }

# Where the generator of the site is, or belongs: docs/site/packages.list, as this root lacks it
docs_generator() { echo "$PEERLANE_CACHE/docs-$(hash_files "$TOP/docs/site/packages.list")-$PEERLANE_ROOT_KEY"; }

# lock NAME: held until this process ends (descriptor 9). Says so when it has to wait. NAME is a path, or one of the cache's locks.
lock() {
	lock_file=$1
	case $1 in
	*/*) ;;
	*)
		lock_file=$PEERLANE_CACHE/locks/$1
		mkdir -p "$PEERLANE_CACHE/locks"
		;;
	esac
	exec 9>"$lock_file"
	flock -n 9 || {
		say "  WAIT    ${1##*/}: another build, or another step of this one, makes it"
		flock 9
	}
}

# step LABEL LOG CMD...: runs CMD with its output in LOG, says what and how long, shows the end of LOG on failure.
step() {
	step_label=$1 step_log=$2
	shift 2
	mkdir -p "${step_log%/*}"
	step_start=$(date +%s)
	say "  ${step_label} ..."
	# Not after "||" or "if": there "set -e" would be off inside CMD.
	set +e
	if [ "${V-0}" = 1 ]; then
		(set -e; "$@") >&2 9>&-
	else
		(set -e; "$@") >"$step_log" 2>&1 9>&-
	fi
	step_rc=$?
	set -e
	step_end=$(date +%s)
	if [ "$step_rc" -ne 0 ]; then
		if [ "${V-0}" != 1 ]; then
			say "--- the end of $step_log"
			tail -n 30 "$step_log" >&2
			say "---"
		fi
		die "failed after $((step_end - step_start)) s: $step_label$(cause "$step_log") (log: $step_log)"
	fi
	say "  ${step_label}: done in $((step_end - step_start)) s"
}

# same_or_move NEW OLD: puts NEW in the place of OLD only when they differ, so that times stay meaningful.
same_or_move() {
	if [ -f "$2" ] && cmp -s "$1" "$2"; then
		rm -f "$1"
	else
		mv -f "$1" "$2"
	fi
}
