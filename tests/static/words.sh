#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: each term of the README and the tutorial that a web developer would not know has an entry in words.md
# tier: check
# tags: quick static
# timeout: 30

. "$TOP/scenarios/lib/case.sh"
cd "$TOP" || exit 1
words=docs/reference/words.md

# Abbreviations that need no entry: everybody knows them, or they are names
known='API CI CPU FIDELITY GB GPU IO IP IPC LICENSES MIT NVIDIA README TCP'
# Terms in small letters, and names
terms='aperture
coherent window
ConnectX
copy engine
cuFile
dma-buf
GPUDirect
Grace Hopper
guest
host memory
InfiniBand
libibverbs
mlx5
NUMA node
page cache
PCIe switch
peer
peer-memory client
perftest
registration
root complex
root port
soft-RoCE
staged
strict
topology'

# prose FILE…: without code and addresses
prose() {
	awk 'FNR == 1 { code = 0 } /^ *```/ { code = !code; next } !code && !/^    [^ ]/' "$@" |
		sed 's/`[^`]*`//g; s/](.*)/]/g; s/<!--.*-->//; s/<[^>]*>//g'
}

# without_entry WORDS FILE…
without_entry() {
	awk -F ' *[|] *' '/^[|]/ { n = split(tolower($2), word, /, /); for (i = 1; i <= n; i++) print word[i] }' "$1" >"$OUT/entries"
	shift
	prose "$@" | tr '\n' ' ' >"$OUT/prose"
	{
		grep -oE '\<[A-Z][A-Z0-9]+[A-Za-z0-9]*\>' "$OUT/prose" | sed -E 's/([A-Z0-9])s$/\1/' | sort -u |
			grep -vxF "$(echo "$known" | tr ' ' '\n')"
		echo "$terms" | while IFS= read -r term; do
			grep -qwiF -e "$term" "$OUT/prose" && echo "$term"
		done
	} | while IFS= read -r term; do
		grep -qxiF -e "$term" "$OUT/entries" || echo "$term"
	done
}
check_eq "each has its entry" "" "$(without_entry $words README.md docs/tutorial.md)"
check "many terms were looked for" test "$(prose README.md docs/tutorial.md | grep -coE '\<(RDMA|NVMe|GPUDirect|staged)\>')" -ge 10
check_eq "entries are in order" "" "$(awk -F ' *[|] *' '/^## / { last = "" }
	/^[|]/ && $2 !~ /^(word|---)$/ { now = tolower($2); gsub(/`/, "", now); if (now < last) print $2; last = now }' $words | grep -vx 'WRITE, READ, SEND')"
# this can fail
sed '/^| NVMe |/d; s/^| staged |/| stages |/' $words >"$OUT/bad.md"
check_eq "a missing entry is seen" "NVMe staged" "$(without_entry "$OUT/bad.md" README.md docs/tutorial.md | xargs)"
finish
