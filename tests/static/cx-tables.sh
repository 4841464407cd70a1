#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the specification of the ConnectX names each command and each capability that the model has, and no other commands
# tags: static
# tier: check
# timeout: 30

. "$TOP/scenarios/lib/case.sh"
model=$TOP/hw-model/peerlane
rst=$TOP/hw-model/docs/peerlane-cx.rst

# section TITLE FILE
section() {
	awk -v title="$1" '
	was == title && /^--+$/ { on = 1; next }
	on && /^--+$/ { exit }
	on { print was }
	{ was = $0 }' "$2"
}

# commands FILE [SECTION]: of the first column of its table
commands() {
	section "${2:-Commands}" "$1" | grep -E '^([0-9A-Z_]+, )*[0-9A-Z_]+,?(  |$)' | cut -c1-60 | grep -oE '[0-9A-Z_]{3,}' | sort -u
}

# capabilities FILE
capabilities() {
	section Capabilities "$1" | grep -oE '[a-z][a-z0-9_]+' | sort -u
}

sed -nE 's/^ *PLC_(COMMAND|DRIVERS|ETH|ETH_DRIVERS)\(([A-Z0-9_]+),.*/\2/p' "$model"/peerlane-cx-*.c | sort >have
check "the model has commands" test "$(wc -l <have)" -gt 50
check_eq "its commands are those of the specification's table" "$(cat have)" "$(commands "$rst")"

check_eq "none of them is in the table of those that are refused" '' "$(commands "$rst" 'Commands that are refused' | grep -xF -f have)"
check "which has some" test "$(commands "$rst" 'Commands that are refused' | wc -l)" -gt 10
check_eq "each is implemented or acknowledged" '' "$(section Commands "$rst" | grep -E '^[0-9A-Z_]{3,}' |
	grep -vE '^[0-9A-Z_, ]{60} (implemented|acknowledged)( |$)')"

# The manual writes some names out
sed -nE 's/^ *\{ CX_CAP_([A-Z0-9_]+),.*/\1/p; s/.*cx_set\(cap, CX_CAP_([A-Z0-9_]+),$/\1/p' "$model"/peerlane-cx-caps.c | tr "[:upper:]" "[:lower:]" |
	sed 's/^rts2rts_qc$/rts2rts_qp_counters_set_id/; s/^umr_extended_offset$/umr_extended_translation_offset/; s/_qc$/_q_counters/
		s/^max_q_counters$/max_qc/' | sort -u >have
check "the model has capabilities" test "$(wc -l <have)" -gt 40
check_eq "the specification names each of its capabilities" '' "$(capabilities "$rst" | comm -23 have -)"

# syndromes FILE: of completions with errors
syndromes() {
	section 'Completions with errors' "$1" | grep -oE '^0x[0-9a-f]{2}'
}
sed -nE 's/^ *CX_SYND_[A-Z_]+ = (0x[0-9a-f]{2}),$/\1/p' "$model"/peerlane-cx-regs.h >have_syndromes
check_eq "the syndromes of its completions are those of the specification's table" "$(cat have_syndromes)" "$(syndromes "$rst")"

# these can fail
grep -v '^NOP ' "$rst" >less
sed 's/^log_max_pd,/log_max_xy,/' less >bad
check_false "a command that is not there is seen" test "$(commands "$rst")" = "$(commands bad)"
check_eq "and a refused command that is there" NOP "$(sed 's/^MAD_IFC /NOP     /' "$rst" >bad; commands bad 'Commands that are refused' | grep -xF NOP)"
sed 's/^log_max_pd,/log_max_xy,/' less >bad
check_eq "and a capability" log_max_pd "$(capabilities bad | comm -23 have -)"
grep -v '^0x06 ' "$rst" >less
check_false "and a syndrome" test "$(cat have_syndromes)" = "$(syndromes less)"
finish
