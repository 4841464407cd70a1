#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: libcufile keeps a program's record locks on overlayfs, where /proc/locks has another device than stat()
# tags: cufile
# tier: all
# timeout: 120
set -u
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/userlib.sh"

unit=$BUILD/userlib/tests/cufile-unit
need_file "$unit"
mkdir -p lower upper work m
# layers of two file systems: files have a device that is not the mount's
cat >on-overlay <<'END'
mount -t tmpfs lower lower && mkdir lower/layer &&
	mount -t overlay over m -o lowerdir=lower/layer,upperdir=upper,workdir=work,xino=off || exit 99
mkdir m/dir
"$1" "$PWD/m/dir" locks
END
set -- --mount
[ "$(id -u)" = 0 ] || set -- --user --map-root-user "$@"
unshare "$@" true >out 2>&1 || skip "no overlayfs can be mounted: $(tail -n 1 out)"
unshare "$@" sh on-overlay "$unit" >out 2>&1
status=$?
[ $status -ne 99 ] || skip "no overlayfs can be mounted: $(tail -n 1 out)"
ended locks $status out
finish
