#!/bin/sh
# SPDX-License-Identifier: MIT
#
# qmp-call.sh DIR JSON: one QMP command over DIR/qmp.in and DIR/qmp.out, and
# its reply, on one line.  The caller holds the lock and bounds the time.

set -u
dir=$1
json=$2

# QEMU may not have opened its ends yet, so both stay open here; an id finds the
# reply between events
id=call-$$
case $json in
'{'*'}') ;;
*) echo '{"error":{"class":"Local","desc":"not a JSON object"}}'; exit 1 ;;
esac
exec 3<>"$dir/qmp.in" 4<>"$dir/qmp.out"
# QEMU's end is told by an event, and by this file before that
[ ! -e "$dir/qemu.rc" ] || exit 1
printf '%s,"id":"%s"}\n' "${json%\}}" "$id" >&3
while IFS= read -r line <&4; do
	case $line in
	*"\"id\": \"$id\""* | *"\"id\":\"$id\""*)
		printf '%s\n' "$line" | tr -d '\r'
		exit 0
		;;
	*'"EXITED"'*) exit 1 ;;
	*'"event"'*) printf '%s\n' "$line" >>"$dir/qmp.events" ;;
	esac
done
exit 1
