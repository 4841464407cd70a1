#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the build root has no network, the checkout at its place, and the caller's files
# tags: build
# tier: check
# timeout: 120

# Expressions for at_exit and for inner shells are meant to stay as they are.
# shellcheck disable=SC2016

. "$TOP/scenarios/lib/case.sh"
# shellcheck source=scenarios/lib/machine/pace.sh
. "$TOP/scenarios/lib/machine/pace.sh"

check_eq "the only network interface is loopback" lo "$(sed '1,2d;s/:.*//;s/ //g' /proc/net/dev)"
check "loopback is up" sh -c 'busybox ip addr show lo | grep -q 127.0.0.1'
# 192.0.2.0/24 is reserved for documents: unreachable at once without a network, a time-out with one.
check_fails "nothing outside can be reached" "Network is unreachable" busybox wget -q -T 2 -O - http://192.0.2.1/
check_fails "an address outside has no route" "Network is unreachable" busybox ip route get 192.0.2.1

# Entered anew, from inside: what a caller on the host sees, as far as a nested one can.
if [ "$(id -u)" != 0 ]; then
	skip_part "not root in here: a nested root cannot be entered"
	finish
fi
enter() { env -u PEERLANE_IN_ROOT -u PEERLANE_ROOT_KEY -u PEERLANE_FETCH_KEY "$TOP/images/build/in-root" "$@"; }
for setting in 'PEERLANE_ACCEL=kmv tcg or kvm' 'PEERLANE_MODE=rooot root, unshare or sudo'; do
	name=${setting%%=*}
	value=${setting#*=}
	check_fails "$name that is none is refused" "^peerlane: $name is ${value#* }, not \"${value%% *}\"" \
		env -u PEERLANE_IN_ROOT -u PEERLANE_ROOT_KEY -u PEERLANE_FETCH_KEY "$name=${value%% *}" "$TOP/images/build/in-root" true
done
mkdir -p "$TOP/build"
work=$(mktemp -d "$TOP/build/in-root.XXXXXX")
at_exit 'rm -rf "$work"'
cd "$work" || exit 1
check_eq "the working folder is kept" "$work" "$(enter pwd)"
check_eq "arguments arrive as they are" "a  b|*|" "$(enter printf '%s|%s|%s' 'a  b' '*' '')"
check "the status comes back" sh -c 'st=0; env -u PEERLANE_IN_ROOT "$1/images/build/in-root" sh -c "exit 7" || st=$?; test $st = 7' sh "$TOP"
enter touch made
check_eq "a file made inside belongs to the caller" "$(id -u)" "$(stat -c %u made)"
check_eq "no mount is left behind" "$(wc -l </proc/self/mounts)" "$(enter true; wc -l </proc/self/mounts)"
LIBRARY_PATH=/nowhere CFLAGS=-bad check_eq "the host's compiler settings stay outside" "" \
	"$(LIBRARY_PATH=/nowhere CFLAGS=-bad enter sh -c 'echo "${LIBRARY_PATH-}${CFLAGS-}"')"
# By sudo: as the user who called, with all of their groups. In a copy, as that user may not read this checkout.
user=$(mktemp -d)
at_exit 'rm -rf "$user"'
mkdir -p "$user/images" "$user/cache" "$user/bin"
cp -R "$TOP/images/build" "$user/images/build"
cp "$TOP/versions.mk" "$user/"
root=$PEERLANE_CACHE/root-$PEERLANE_ROOT_KEY
ln -s "$root" "$user/cache/"
echo sudo >"$user/cache/${root##*/}.mode"
printf '#!/bin/sh\nwhile [ "$1" != unshare ]; do shift; done\nexec "$@"\n' >"$user/bin/sudo"
printf '#!/bin/sh\ncase $1 in -u) echo 1234 ;; -g) echo 2345 ;; -G) echo 2345 3456 4567 ;; esac\n' >"$user/bin/id"
chmod -R a+rX "$user"
chown 1234 "$user/cache"
chmod 755 "$user/bin/sudo" "$user/bin/id"
check_eq "by sudo: the caller's user, group and other groups" "1234 2345 2345 3456 4567" \
	"$(env -u PEERLANE_IN_ROOT PATH="$user/bin:$PATH" PEERLANE_CACHE="$user/cache" "$user/images/build/in-root" \
		sh -c 'echo "$(/usr/bin/id -u) $(/usr/bin/id -g) $(/usr/bin/id -G)"')"

# Processor time, which a busy machine does not stretch much: of what has ended below this shell
spent() { awk '{ sub(/.*\) /, ""); print $14 + $15 }' "/proc/$$/stat"; }
before=$(spent)
for _ in 1 2 3 4 5; do enter true; done
ms=$((($(spent) - before) * 1000 / $(getconf CLK_TCK) / 5))
limit=$(paced 200)
check "entering costs less than $limit ms (here $ms)" test "$ms" -lt "${limit%.*}"
finish
