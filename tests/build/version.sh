#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: all parts agree on the version: tools, libraries, modules, archives, documents
# tier: check
# timeout: 60

. "$TOP/scenarios/lib/case.sh"
need_tool make git modinfo
need_file "$BUILD/userlib/libpeerlane.pc" "$BUILD/wire/peerlane-wire" "$BUILD/kernel/7.2/peerlane.ko"

version=$(awk '$1 == "#define" && $2 ~ /^PLN_VERSION_/ { v = v "." $3 } END { print substr(v, 2) }' "$TOP/userlib/include/peerlane/peerlane.h")
check "it is three numbers" sh -c 'echo "$1" | grep -qxE "[0-9]+[.][0-9]+[.][0-9]+"' sh "$version"
same() { # PART ITS-VERSION
	check_eq "$1" "$version" "$2"
}
same "images/build/version" "$("$TOP/images/build/version")"
for tool in "$BUILD/userlib/peerlane" "$BUILD/userlib/peerlane.static" "$BUILD/wire/peerlane-wire"; do
	same "${tool##*/} --version" "$("$tool" --version | sed 's/^peerlane[a-z-]* //')"
done
for program in run try demo matrix draw report; do
	same "scenarios/$program --version" "$("$TOP/scenarios/$program" --version | sed "s|^scenarios/$program ||; s/-.*//")"
done
for pc in libpeerlane libpeerlane-mr; do
	same "$pc.pc" "$(sed -n 's/^Version: //p' "$BUILD/userlib/$pc.pc")"
done
for module in "$BUILD"/kernel/*/peerlane.ko "$BUILD"/kernel/*/peerlane_gpu.ko; do
	same "${module#"$BUILD"/}" "$(modinfo -F version "$module")"
done
make -s -C "$TOP/kernel" dkms-source DESTDIR="$OUT" >dkms.log 2>&1 || diag "$(cat dkms.log)"
dkms=usr/src/peerlane-$version
same "the module's folder for DKMS" "$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' "$dkms/dkms.conf")"
# what it hands to the compiler there, without the rest of the tree
same "and what is built there" "$(make -pn -C "$dkms/kernel" help 2>/dev/null | sed -n 's/^export PLN_VERSION := //p; s/^PLN_VERSION := //p' | head -n 1)"
same "the first heading of CHANGELOG.md" "$(sed -n '/^## /{s/^## \([^ ]*\).*/\1/p; q}' "$TOP/CHANGELOG.md")"
# others FILE...: where documents name another version
others() {
	grep -HnrE --include='*.md' 'peerlane([-/]|@v)[0-9]+[.][0-9]+[.][0-9]+' "$@" | grep -vE "peerlane([-/]|@v)$version([^0-9.]|[.][a-z]|\$)"
}
check_eq "documents name no other" "" "$(cd "$TOP" && others docs README.md)"
sed "s/@v$version/@v9.9.9/" "$TOP/docs/how-to/use-in-ci.md" >other.md
check_eq "… and one that an action is pinned by is seen" "    - uses: OWNER/peerlane@v9.9.9" "$(others other.md | cut -d : -f 3-)"

# Archives: in a repository of its own, as the history here may have the tag or not
mkdir -p tree/images/build tree/userlib/include/peerlane
cp "$TOP/images/build/version" tree/images/build/
cp "$TOP/userlib/include/peerlane/peerlane.h" tree/userlib/include/peerlane/
named() { tree/images/build/version --commit; }
in_tree() { git -C tree -c user.name=a -c user.email=a@b.invalid -c init.defaultBranch=main "$@" >>git.log 2>&1; }
check_eq "without history it is the version alone" "$version" "$(named)"
in_tree init && in_tree add . && in_tree commit -q -m one
commit=$(git -C tree rev-parse --short HEAD)
check_eq "before the tag the commit is named" "$version-$commit" "$(named)"
in_tree tag v9.9.9
check_eq "another tag says nothing" "$version-$commit" "$(named)"
in_tree tag "v$version"
check_eq "at the tag it is the version alone" "$version" "$(named)"
echo >>tree/userlib/include/peerlane/peerlane.h
check_eq "an edit is named" "$version-dirty" "$(named)"
in_tree commit -q -a -m two
check_eq "and a commit after the tag" "$version-1-g$(git -C tree rev-parse --short HEAD)" "$(named)"
finish
