#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: what a drive keeps in a power cut: all that was flushed, sectors of the rest, and nothing else
# tags: harness
# tier: check
# timeout: 60

. "$TOP/scenarios/lib/case.sh"
need_tool cc jq

cc -O2 -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -o power-cut "$TOP/scenarios/lib/machine/power-cut.c" -ljson-c || exit 1

# A log as dm-log-writes and blklogwrites have it; sectors of 512 bytes, numbers little-endian
u64() {
	for each; do
		for byte in 0 1 2 3 4 5 6 7; do
			# shellcheck disable=SC2059 # an octal escape
			printf "\\$(printf %03o $((each >> 8 * byte & 255)))"
		done
	done
}
pad() { # BYTES
	head -c "$1" /dev/zero
}
super() {
	u64 $((0x6a736677736872)) 1 0 512
	pad 480
}
entry() { # SECTOR SECTORS FLAGS
	u64 "$1" "$2" "$3" 0
	pad 480
}
write() { # SECTOR SECTORS LETTER
	entry "$1" "$2" 0
	pad $((512 * $2)) | tr '\0' "$3"
}
flush() {
	entry 0 0 1
}
dots() {
	pad 32768 | tr '\0' .
}
# of each sector, its first letter; what is in it must be the same
letters() { # FILE
	fold -w 512 "$1" | awk '{
		other = $0
		gsub(substr($0, 1, 1) == "." ? "[.]" : substr($0, 1, 1), "", other)
		printf "%s", other == "" ? substr($0, 1, 1) : "?"
	}'
}
cut_at() { # BYTES SEED
	dots >drive
	said=$(./power-cut drive writes "$1" "$2" 2>&1) || said="failed: $said"
	echo "$said" | jq -c '[.writes, .flushes, .unflushed]' 2>/dev/null || echo "$said"
	letters drive
	echo
}

{ super; write 0 4 a; write 8 2 b; flush; write 2 4 c; write 60 4 d; } >writes
all=$(wc -c <writes)
check_eq "what was flushed is kept, with seed 0 nothing else" "[4,1,8]
aaaa....bb......................................................" "$(cut_at "$all" 0)"
first=$(cut_at "$all" 7 | tail -n 1)
check_eq "with another, sectors of the rest" "aa" "$(echo "$first" | cut -c 1-2)"
check "some, and whole ones" sh -c 'echo "$1" | grep -Eqx "aa[ac]{2}[.c]{2}[.]{2}bb[.]{50}[.d]{4}"' sh "$first"
check_eq "the same ones each time" "$first" "$(cut_at "$all" 7 | tail -n 1)"
kept=0 lost=0
for seed in 1 2 3 4 5 6 7 8; do
	got=$(cut_at "$all" "$seed" | tail -n 1)
	case $got in *c*) kept=1 ;; esac
	case $got in *...d* | *d...) lost=1 ;; esac
	[ "$got" = "$first" ] || kept_others=1
done
check_eq "other ones with other seeds, kept and lost" "1 1 1" "$kept $lost ${kept_others-}"

# What the emulator does behind the cut: if a flush there is none, no write behind it may be kept
before=$(wc -c <writes)
{ cat writes; flush; } >writes.new && mv writes.new writes
check_eq "a flush behind the cut is none" "[4,1,8]
aaaa....bb......................................................" "$(cut_at "$before" 0)"
check_eq "one before it is" "[4,2,0]
aacccc..bb..................................................dddd" "$(cut_at $((before + 512)) 0)"
{ super; write 0 4 a; } >writes
before=$(wc -c <writes)
{ cat writes; flush; write 8 8 b; } >writes.new && mv writes.new writes
for seed in 0 1 2 3 4 5 6 7 8; do
	check "seed $seed keeps nothing of a write behind the cut" sh -c 'echo "$1" | grep -Eqx "[a.]{4}[.]{60}"' sh \
		"$(cut_at "$before" "$seed" | tail -n 1)"
done
{ super; write 0 4 a; write 8 2 b; } >writes
check_eq "nothing flushed, nothing kept" "[2,0,6]
................................................................" "$(cut_at 99999999 0)"

# what is no log
{ super; flush; } >writes
check_fails "nothing was written: an error" "nothing was written" ./power-cut drive writes 9999 0
: >writes
check_fails "an empty log: an error" "cannot be read at sector 0" ./power-cut drive writes 0 0
pad 4096 >writes
check_fails "no log: an error" "no log of writes" ./power-cut drive writes 4096 0
{ super; entry 0 4 0; pad 1024; } >writes
check_fails "half an entry: an error" "half an entry at sector 1" ./power-cut drive writes 9999 0
{ super; write 62 4 a; } >writes
check_fails "a write behind the end of the drive: an error" "no entry at sector 1" ./power-cut drive writes 9999 0
{ super; write 0 1 a; pad 512; } >writes
check_fails "an entry of nothing: an error" "no entry at sector 3" ./power-cut drive writes 9999 0
{ super; entry 0 4 4; } >writes
check_fails "a discard: an error" "neither a write nor a flush at sector 1" ./power-cut drive writes 9999 0
check_fails "no arguments: an error" "^usage: power-cut" ./power-cut
check_fails "no number: an error" "x is no number" ./power-cut drive writes x 0
check_fails "no drive: an error" "nowhere: No such file" ./power-cut nowhere writes 0 0
finish
