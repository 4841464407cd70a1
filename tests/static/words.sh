#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: each term of the README, the tutorials and the guides that a web developer would not know has an entry in words.md
# tier: check
# tags: static
# timeout: 30

. "$TOP/scenarios/lib/case.sh"
cd "$TOP" || exit 1
words=docs/reference/words.md

# Abbreviations that need no entry: everybody knows them, or they are names
known='AMD API CI CPU FIDELITY GB GPU H100 IO IPv4 JSON MAC MB MIT NFS NVIDIA POSIX RAID README TCP UDP URL UTM UUID WSL WSL1 WSL2'
# Terms in small letters, and names
terms='aperture
atomics
coherent window
collective
completion
ConnectX
copy engine
cuFile
DaemonSet
DeepEP
device counter
dm-crypt
dma-buf
fence
GPUDirect
Grace Hopper
guest
host bridge
host memory
hotplug
InfiniBand
initramfs
IOMMU group
kmemleak
KvikIO
libfabric
libibverbs
link-local
lockdep
managed memory
method
MLNX_OFED
mlx5
modelled
NUMA node
overlay file system
packet sequence number
page cache
PCIe switch
peer
peer-memory client
perftest
pinned
prolog
provider
quarantine
queue pair
RDMA core
registration
revoke
root complex
root port
scenario
Slurm
snapshot
soft-RoCE
staged
strict
subnet manager
topology
virtio
wire
work request'

# prose FILE…: without code and addresses
prose() {
	awk 'FNR == 1 { code = 0 } /^ *```/ { code = !code; next } !code && !/^    /' "$@" |
		sed 's/`[^`]*`//g; s/]([^)]*)/]/g; s/<!--.*-->//; s/<[^>]*>//g'
}

# used TERM: in $OUT/prose
used() {
	grep -qwiE -e "${1}s?" "$OUT/prose"
}
# unused TERMS: those that are not in $OUT/prose
unused() {
	echo "$1" | while IFS= read -r term; do
		used "$term" || echo "$term"
	done
}

# without_entry WORDS FILE…
without_entry() {
	awk -F ' *[|] *' '/^[|]/ { n = split(tolower($2), word, /, /); for (i = 1; i <= n; i++) print word[i] }' "$1" >"$OUT/entries"
	shift
	prose "$@" | tr '\n' ' ' >"$OUT/prose"
	{
		grep -oE '\<[A-Z][A-Z0-9]+[A-Za-z0-9]*(-[A-Z0-9]+)*\>' "$OUT/prose" | sed -E 's/([A-Z0-9])s$/\1/' | sort -u |
			grep -vxF "$(echo "$known" | tr ' ' '\n')"
		echo "$terms" | while IFS= read -r term; do
			used "$term" && echo "$term"
		done
	} | while IFS= read -r term; do
		grep -qxiF -e "$term" "$OUT/entries" || echo "$term"
	done
}
pages="README.md docs/README.md $(printf '%s ' docs/tutorial*.md docs/how-to/*.md)"
# shellcheck disable=SC2086 # a list
check_eq "each has its entry" "" "$(without_entry $words $pages)"
check_eq "each that needs none is there" "" "$(echo "$known" | tr ' ' '\n' | while IFS= read -r word; do
	grep -qE "\\<${word}s?\\>" "$OUT/prose" || echo "$word"
done)"
check_eq "each that is looked for is there, too" "" "$(unused "$terms")"
# shellcheck disable=SC2086
check "many terms were looked for" test "$(prose $pages | grep -coE '\<(RDMA|NVMe|GPUDirect|staged)\>')" -ge 40
check_eq "entries are in order" "" "$(awk -F ' *[|] *' '/^## / { last = "" }
	/^[|]/ && $2 !~ /^(word|---)$/ { now = tolower($2); gsub(/`/, "", now); if (now < last) print $2; last = now }' $words | grep -vx 'WRITE, READ, SEND')"
# this can fail
check_eq "a term that no page uses is seen" "no such term" "$(unused "staged
no such term")"
sed '/^| NVMe |/d; /^| work request |/d; s/^| staged |/| stages |/; s/ LID,/ LIDS,/' $words >"$OUT/bad.md"
# shellcheck disable=SC2086
check_eq "a missing entry is seen" "LID NVMe staged work request" "$(without_entry "$OUT/bad.md" $pages | xargs)"
finish
