# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# Who is killed outright cannot clean up; another process does it for him.
#
#	lives PID	it is there, and not just waiting to be buried
#	watch_end PID	until it does not live any more; looks twice a second
#	watch_here FILE	this process, which is a part of the shell $$, has its number
#			there; fails when that shell does not live any more

lives() {
	# no program is run for it: it is asked often
	read -r lives_stat 2>/dev/null <"/proc/$1/stat" || return 1
	case ${lives_stat##*) } in
	[ZX]*) return 1 ;;
	esac
}

# not tail --pid, for which a process that nobody buries is there for ever
watch_end() {
	while lives "$1"; do
		sleep 0.5
	done
}

# First the number, then the look: who comes to clean up after that shell finds the
# number, or this one sees that the shell is gone.  That shell may be quicker.
watch_here() {
	read -r watch_pid watch_rest </proc/self/stat
	: "$watch_rest"
	[ -e "$1" ] || echo "$watch_pid" >"$1"
	lives "$$"
}

# short_of DIR MIB: says what room the disk of DIR has, when that is less than MIB MiB; else fails
short_of() {
	df -Pk "$1" | awk -v dir="$1" -v need="$2" '
	NR == 2 && $4 < need * 1024 {
		printf "the disk of %s has %d MiB left, and this needs %d\n", dir, $4 / 1024, need
		short = 1
	}
	END { exit !short }'
}

# relay CMD...: its status. A signal that ends this shell, HUP, INT or TERM, ends CMD first, by TERM or by $RELAY_SIGNAL;
# then relay_ended is the status to exit with. A shell that waits for a command in the foreground would hear of the
# signal when that has ended. What a shell starts in the background ignores INT and QUIT, as does all below it: GNU's env
# gives them back, so that a terminal's Ctrl-C arrives there, too.
relay() {
	relay_ended=
	relay_pid=starts
	trap 'relay_end 129' HUP
	trap 'relay_end 130' INT
	trap 'relay_end 143' TERM
	if env --default-signal=INT,QUIT true 2>/dev/null; then
		set -- env --default-signal=INT,QUIT "$@"
	fi
	"$@" &
	relay_pid=$!
	[ -z "$relay_ended" ] || relay_end "$relay_ended"
	wait "$relay_pid"
	relay_status=$?
	[ -z "$relay_ended" ] || wait "$relay_pid" 2>/dev/null
	relay_pid=
	return "$relay_status"
}

relay_end() {
	relay_ended=$1
	case $relay_pid in
	starts) ;;
	'') exit "$1" ;;
	*) kill -s "${RELAY_SIGNAL:-TERM}" "$relay_pid" 2>/dev/null ;;
	esac
}
