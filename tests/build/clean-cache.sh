#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: clean-cache removes when it is told to, what nobody uses, and not while somebody builds
# tier: check
# timeout: 120

. "$TOP/scenarios/lib/case.sh"
need_tool flock

cache=$OUT/cache
mkdir -p "$cache/locks" "$cache/guest-7.2-unused" "$cache/root-old" "$cache/logs"
: >"$cache/locks/root-old"
clean() { env -u PEERLANE_ROOT_KEY PEERLANE_CACHE="$cache" "$TOP/images/build/clean-cache" "$@" >said 2>&1 || { cat said; return 2; }; }
left() { (cd "$cache" && echo *); }

check "without an order it shows the cache" clean
check "and says what is not used" grep -qE '^  unused .* root-old$' said
check "and how to remove it" grep -q 'make clean-cache UNUSED=1' said
check_eq "and removes nothing" "guest-7.2-unused locks logs root-old" "$(left)"
for order in --unused --all; do
	check_eq "$order while somebody builds is refused" 1 \
		"$(flock "$cache/locks/root-old" sh -c 'PEERLANE_CACHE=$1 "$2" $3 2>said; echo $?' \
			sh "$cache" "$TOP/images/build/clean-cache" "$order")"
	check "and says why" grep -q 'a build is running (root-old), so nothing was removed' said
done
check_eq "and removes nothing either" "guest-7.2-unused locks logs root-old" "$(left)"
# those of this checkout, by their names
TOP=$TOP PEERLANE_CACHE=$cache sh -c '. "$TOP/images/build/lib.sh" && find_stages && mkdir "$(arm64_parts)" "$(docs_generator)"'
mkdir "$cache/arm64-other"
check "--unused" clean --unused
check_eq "removes what nobody uses" "arm64 docs locks logs" "$(left | sed 's/-[0-9a-f]*//g')"
check "--all" clean --all
check_eq "removes the rest, but for the locks" locks "$(left)"
check_fails "another word is refused with the usage" '^usage:' clean --everything
finish
