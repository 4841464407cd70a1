#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: make docs: every document is a page, search finds words of each kind of page, a link that leads nowhere fails
# tags: build
# tier: nightly
# timeout: 1200

. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/tree.sh"
. "$TOP/images/build/lib.sh"
need_tool jq
need_file "$BUILD/userlib/man/peerlane.1"
find_stages
generator=$(docs_generator)
[ -d "$generator" ] || skip "no generator of the site: make docs-generator fetches it"

at_exit 'rm -rf "$OUT/site" "$OUT/small"'
check "the site is made" "$TOP/images/build/build-docs" "$TOP" "$OUT/site" || finish

# page DOCUMENT TITLE: it is one, with this title, and fits a phone
page() {
	if ! grep -q '<meta[^>]*name="viewport"[^>]*width=device-width' "site/$1.html"; then
		echo "$1: no page that fits a phone"
	elif ! sed -n 's|.*<h1>\(.*\)<a class="headerlink".*|\1|p' "site/$1.html" | sed 's/<[^>]*>//g; s/&#39;/\x27/g; s/&amp;/\&/g' |
		grep -qxF -e "$2"; then
		echo "$1: its title is not $2"
	fi
}
tree_files >files
{
	grep '[.]md$' files | while IFS= read -r file; do
		printf '%s\t%s\n' "${file%.md}" "$(sed -n '/^# /{s/^# //; s/`//g; s/\\\(.\)/\1/g; p; q}' "$TOP/$file")"
	done
	for file in "$TOP"/hw-model/docs/*.rst; do
		printf 'hw-model/docs/%s\t%s\n' "$(basename "$file" .rst)" "$(awk '/^===/ && before ~ /^[A-Z]/ { print before; exit } { before = $0 }' "$file")"
	done
	for file in "$BUILD"/userlib/man/*.[1-8]; do
		printf 'docs/man/%s\t%s\n' "${file##*/}" "$(basename "$file" | sed 's/\.\(.\)$/(\1)/')"
	done
} >documents
check "there are documents of all kinds" awk -F '\t' '{ n[substr($1, 1, 8)]++ } END { exit !(n["docs/man"] > 80 && n["hw-model"] == 4 &&
	n["scenario"] > 20 && n["docs/how"] > 10 && n["README"]) }' documents
while IFS='	' read -r name title; do
	page "$name" "$title"
done <documents >lacking
check_eq "each document is a page with its title, and fits a phone" "" "$(cat lacking)"
check "the site begins at index.html" cmp site/index.html site/README.html
check_eq "no style sheet fetches anything from a network" "" \
	"$(grep -rlE '@import|url\(["'\'']?(https?:)?//' site --include='*.css')"

# found WORD: the pages that search finds it on; the index has the stems of words
sed '1s/^Search\.setIndex(//; $s/)[^)]*$//' site/searchindex.js >index.json
found() {
	jq -r --arg word "$1" '.docnames as $names | .terms[$word] // [] | if type == "array" then .[] else . end | $names[.]' index.json
}
check "search loads its index from the site itself" grep -q 'src="searchindex.js"' site/search.html
check "it finds a guide" sh -c 'echo "$1" | grep -qx docs/how-to/watch-a-cluster' sh "$(found daemonset)"
check "a register's specification" sh -c 'echo "$1" | grep -qx hw-model/docs/peerlane-switch' sh "$(found lnkcap)"
check "a scenario" sh -c 'echo "$1" | grep -qx scenarios/hot-unplug/README' sh "$(found pciehp)"
check "what a manual page says" sh -c 'echo "$1" | grep -qx docs/man/libcufile-peerlane.7' sh "$(found memfd)"
check_eq "and nothing of a word that is nowhere" "" "$(found "no""such""word")"

# small LINE: a tree of three documents with this line in one of them becomes a site
small() {
	rm -rf small
	mkdir -p small/tree/docs small/tree/scenarios small/tree/tools
	echo '# Front' >small/tree/README.md
	printf '# Documents\n\n## Guides\n\n- [a](a.md)\n- [scenarios](../scenarios/README.md)\n' >small/tree/docs/README.md
	printf '# A\n\n## Part\n\n%s\n' "$1" >small/tree/docs/a.md
	echo '# Scenarios' >small/tree/scenarios/README.md
	echo 'int main(void);' >small/tree/tools/tool.c
	"$TOP/images/build/build-docs" "$OUT/small/tree" "$OUT/small/site"
}
check "links to a heading, a folder, a source and a manual page are links on the site" small \
	'[part](#part), [folder](../tools/), [source](../tools/tool.c), [manual](man/peerlane.1), [up](../README.md)'
check "and lead to what they name" sh -c 'cd small/site/docs && for page in ../source/tools.html ../source/tools/tool.c.html man/peerlane.1.html; do
	grep -qF "href=\"$page\"" a.html && [ -f "$page" ] || exit 1; done; grep -q "main" ../source/tools/tool.c.html'
check_fails "links that lead nowhere fail" 'docs/a.md:5: .*nothing' small \
	'[a](nothing.md) [b](a.md#nothing-b) [c](#nothing-c) [d](../tools/nothing.c) [e](man/nothing.1)'
cp .check said
for link in nothing.md nothing-b nothing-c tools/nothing.c man/nothing.1; do
	check "... and it names $link" grep -q "docs/a.md:5: .*$link" said
done
check_false "... and there is no site" test -e small/site

# What the generator does not look into
mkdir html
printf '<h1 id="here">a</h1><a href="b.html#there">b</a><a href="b.html#gone">b</a><img src="c.svg"/>%s' \
	'<a href="https://example.org/">e</a><script src="https://example.org/s.js"></script>' >html/a.html
printf '<p id="there"><a href="../html/a.html#here">a</a></p>' >html/b.html
printf 'html/a.html\nhtml/b.html\n' >html.list
check_eq "links in what others wrote are checked, and what a page would fetch" "html/a.html: it would fetch https://example.org/s.js
html/a.html: no such place for the link b.html#gone
html/a.html: no file for the link c.svg" "$(awk -f "$TOP/docs/site/links.awk" html.list html/a.html html/b.html)"
finish
