#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: every package that the build takes has its reason written down, and none that it does not
# tags: static
# tier: check
# timeout: 120

. "$TOP/scenarios/lib/case.sh"

images=$TOP/images
# taken: packages of the root, sources and kernels that are pinned, what is fetched by name, modules of others
{
	sed 's/#.*//; /^[[:space:]]*$/d' "$images/build/packages.list"
	sed -n 's/^\([A-Z]*\)_SERIES=.*/\L\1 source/p' "$TOP/versions.mk"
	grep -q '^K[0-9_]*_RELEASE=' "$TOP/versions.mk" && printf 'linux-image\nlinux-headers\n'
	sed -nE 's/.*host_fetch ([a-z]+) .*/\1/p' "$images/build/fetch"
	sed 's/#.*//; /^[[:space:]]*$/d' "$TOP/docs/site/packages.list"
	cat "$images"/build/fetch* | grep -oE '\<linux-source\>'
	awk '!/^#/ && $4 != "-" { gsub(",", "\n", $4); print $4 }' "$images/build/lands.list"
	sed -nE '/^#/d; s,.* pool/[^ ]*/([^/_]*)_[^ ]*\.(deb|tar\.[a-z]+) .*,\1,p' "$images/build/third-party.list"
} | sort -u >taken
check "there are packages" test "$(wc -l <taken)" -ge 40

# reasons FILE: packages with a reason: the words in backquotes and the sources of the first column
reasons() {
	awk -F ' *[|] *' '/^[|]/ && $2 !~ /^(package|---.*)$/ && $3 != "" {
		rest = $2
		while (match(rest, /`[^`]*`|[A-Za-z]+ source/)) {
			print tolower(substr(rest, RSTART, RLENGTH))
			rest = substr(rest, RSTART + RLENGTH)
		}
	}' "$1" | tr -d '`' | sort
}

missing() { # FILE: what is taken without a reason (<), or has one and is not taken (>)
	reasons "$1" | sort -u | diff taken - | grep '^[<>]'
}

document=$TOP/docs/explanation/dependencies.md
check_eq "each package has its reason, and each reason its package" "" "$(missing "$document")"
check_eq "... once" "" "$(reasons "$document" | uniq -d)"

# these can fail
sed 's/`jq`/`yq`/; s/^\(| `sparse`, [^|]*|\)[^|]*/\1 /; s/^| QEMU source/| `jam`/' "$document" >bad.md
check_eq "packages without a reason are seen, and reasons without a package" "< jq
< qemu source
< shellcheck
< sparse
> jam
> yq" "$(missing bad.md | sort)"
finish
