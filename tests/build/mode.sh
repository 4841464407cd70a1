#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a user who can enter no root gets one clear line
# tags: build
# tier: check
# timeout: 120

. "$TOP/scenarios/lib/case.sh"

need_tool setpriv
[ "$(id -u)" = 0 ] || skip "only root can become another user here"

# Programs that refuse stand in front: no user namespaces, no sudo.  All of it
# lies where any user may read, which the checkout need not do.
dir=$(mktemp -d)
at_exit "rm -rf '$dir'"
mkdir "$dir/bin"
cp "$TOP/images/build/mode" "$TOP/images/build/host-tools.list" "$dir/"
for tool in newuidmap sudo unshare; do
	printf '#!/bin/sh\nexit 1\n' >"$dir/bin/$tool"
	chmod 755 "$dir/bin/$tool"
done
chmod 755 "$dir" "$dir/bin" "$dir/mode"
chmod 644 "$dir/host-tools.list"
rc=0
setpriv --reuid=65534 --regid=65534 --clear-groups env PATH="$dir/bin:$PATH" sh "$dir/mode" >said 2>why || rc=$?
check_eq "it fails" 1 "$rc"
check_eq "it prints no mode" "" "$(cat said)"
check_eq "it says one line" 1 "$(wc -l <why)"
# As on Ubuntu 22.04: newuidmap is there, and an unshare without --map-auto
for word in "run as root" "sudo -n" "no --map-auto" "2.38"; do
	check "the line names '$word'" grep -qF "$word" why
done
check_false "and does not tell to install what is there" grep -q install why
printf '#!/bin/sh\n[ "$1" = --help ] && echo " --map-auto" && exit 0\nexit 1\n' >"$dir/bin/unshare"
# advised_with SETTING...: what it tells a user whom the kernel, with these settings only, lets make no namespaces
sed "s,/proc/sys/,$dir/sys/," "$dir/mode" >"$dir/mode.sys"
chmod 755 "$dir/mode.sys"
advised_with() {
	rm -rf "$dir/sys"
	mkdir -p "$dir/sys/kernel" "$dir/sys/user"
	for setting; do
		echo "${setting#*=}" >"$dir/sys/${setting%%=*}"
	done
	chmod -R a+rX "$dir/sys"
	setpriv --reuid=65534 --regid=65534 --clear-groups env PATH="$dir/bin:$PATH" sh "$dir/mode.sys" 2>&1 >/dev/null |
		sed "s/.*or else: //"
}
subuid="give $(id -un 65534) a line in /etc/subuid and /etc/subgid"
check_eq "with --map-auto it is about the user" "$subuid" "$(advised_with)"
apparmor=kernel/apparmor_restrict_unprivileged_userns
check_eq "or about AppArmor, as on Ubuntu 24.04" "let users make namespaces: sysctl kernel.apparmor_restrict_unprivileged_userns=0" \
	"$(advised_with $apparmor=1)"
check_eq "but not where that restricts nothing" "$subuid" "$(advised_with $apparmor=0 user/max_user_namespaces=100 kernel/unprivileged_userns_clone=1)"
for setting in user/max_user_namespaces kernel/unprivileged_userns_clone; do
	check_eq "or about ${setting#*/}" "let users make namespaces (user.max_user_namespaces, kernel.unprivileged_userns_clone)" \
		"$(advised_with $setting=0)"
done
# without newuidmap: in a PATH of links to what it needs
mkdir "$dir/few"
# needed: the programs that each machine needs
needed() { awk '!/^#/ && NF == 2 { print $1 }' "$dir/host-tools.list"; }
for tool in $(needed | grep -v /); do
	ln -s "$(command -v "$tool")" "$dir/few/$tool"
done
rm "$dir/few/unshare"
ln -s "$dir/bin/unshare" "$dir/few/unshare"
chmod 755 "$dir/few"
sed 's,^PATH=.*,,' "$dir/mode" >"$dir/mode.few"
chmod 755 "$dir/mode.few"
setpriv --reuid=65534 --regid=65534 --clear-groups env PATH="$dir/few" sh "$dir/mode.few" >said 2>why
for word in "run as root" "sudo -n" uidmap /etc/subuid; do
	check "the line names '$word'" grep -qF "$word" why
done

# On a machine that lacks something it is said what, and in which package that is
check "many programs are looked for" test "$(needed | wc -l)" -ge 30
rm "$dir/few/perl" "$dir/few/flock"
check_fails "a machine without two of them" \
	'^peerlane: this host lacks programs that the build calls: flock .util-linux., perl .perl-base.: install these packages' \
	env PATH="$dir/few" sh "$dir/mode.few"

# With a sudo that works it is sudo; with namespaces that work, those come first.
printf '#!/bin/sh\nexit 0\n' >"$dir/bin/sudo"
as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups env PATH="$dir/bin:$PATH" sh "$dir/mode"; }
check_eq "a working sudo is used" sudo "$(as_nobody)"
printf '#!/bin/sh\nexit 0\n' >"$dir/bin/unshare"
check_eq "user namespaces come before sudo" unshare "$(as_nobody)"
printf '#!/bin/sh\nexit 1\n' >"$dir/bin/unshare"
rc=0
PATH="$dir/bin:$PATH" sh "$dir/mode" >said 2>why || rc=$?
check_eq "root without the right to mount fails" 1 "$rc"
check_eq "and is told in one line" 1 "$(wc -l <why)"
check "with what a container needs" grep -qF -e "--cap-add SYS_ADMIN --cap-add NET_ADMIN --security-opt apparmor=unconfined" why
finish
