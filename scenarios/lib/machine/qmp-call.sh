#!/bin/sh
# SPDX-License-Identifier: MIT
#
# qmp-call.sh DIR JSON…: QMP commands over DIR/qmp.in and DIR/qmp.out, one after
# the other, and the reply to the last, on one line; with -e before DIR, each reply,
# a line each.  An error ends the row, is the last reply, and fails.  The caller
# holds the lock and bounds the time.

set -u
each=
[ "$1" != -e ] || { each=1 && shift; }
dir=$1
shift

# QEMU may not have opened its ends yet, so both stay open here; an id finds the
# reply between events
exec 3<>"$dir/qmp.in" 4<>"$dir/qmp.out"
# QEMU's end is told by an event, and by this file before that
[ ! -e "$dir/qemu.rc" ] || exit 1
reply=
n=0
for json; do
	case $json in
	'{'*'}') ;;
	*) echo '{"error":{"class":"Local","desc":"not a JSON object"}}'; exit 1 ;;
	esac
	n=$((n + 1))
	id=call-$$-$n
	printf '%s,"id":"%s"}\n' "${json%\}}" "$id" >&3
	reply=
	while IFS= read -r line <&4; do
		case $line in
		*"\"id\": \"$id\""* | *"\"id\":\"$id\""*)
			reply=$line
			break
			;;
		*'"EXITED"'*) exit 1 ;;
		*'"event"'*) printf '%s\n' "$line" >>"$dir/qmp.events" ;;
		esac
	done
	case $reply in
	'') exit 1 ;;
	'{"error"'* | *', "error": {'*)
		printf '%s\n' "$reply" | tr -d '\r'
		exit 1
		;;
	esac
	[ -z "$each" ] || printf '%s\n' "$reply"
done
[ -n "$each" ] || printf '%s\n' "$reply" | tr -d '\r'
