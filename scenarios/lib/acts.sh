# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2034,SC2154 # for scenario.sh and vm.sh, and from there
#
# Scenarios of several boots, called acts:
#
#	acts_begin
#	act NAME TOPOLOGY [PARAMETERS]	boot the case there, with more kernel parameters
#	act_fact NAME KEY [JQ]		a fact of the guest of that act
#	acts_end			one result of all
#
# The guest reads the act's name as $ACT from /case/act.  Labels and facts of
# all acts go into one result, so their names have the act's in them.  What the
# guest leaves lies in $OUT/NAME/.

acts_begin() {
	acts_topology=$SC_TOPOLOGY
	acts_devices=$SC_DEVICES
	: >"$OUT/acts.jsonl"
	# however it ends, the result names the scenario's own machine
	at_exit acts_restore
}

acts_restore() {
	SC_TOPOLOGY=$acts_topology
	SC_DEVICES=$acts_devices
}

act() {
	diag "$1: ${2##*/}${3:+, $3}"
	SC_TOPOLOGY=$2
	SC_DEVICES=$(sc_devices_json)
	sc_add --argjson devices "$SC_DEVICES" '{$devices}'
	VM_CMDLINE=${3-}
	echo "ACT=$1" >"$OUT/case/act"
	rm -rf "${OUT:?}/$1"
	sc_boot 120
	[ ! -e "$OUT/disk0.img" ] || sc_data_blocks ext4 data copy
	sc_measure
	jq -c '{transfers, routes}' "$OUT/measured.json" >>"$OUT/acts.jsonl"
	rm -f "$OUT"/guest/*.img
	mv "$OUT/guest" "$OUT/$1"
}

act_fact() {
	jq -r --arg key "$2_$1" ".facts[\$key] | ${3:-.}" "$OUT/measured.json"
}

acts_end() {
	acts_restore
	jq -c --slurpfile acts "$OUT/acts.jsonl" --argjson devices "$SC_DEVICES" '
		# links of its own machine, as devices are
		. + {transfers: [$acts[].transfers[]], routes: [$acts[].routes[]],
		     links: [.links[] | select([.link, .below] | IN($devices[] | [.parent, .name]))],
		     devices: $devices}' "$OUT/measured.json" >"$OUT/acts.json" &&
		mv "$OUT/acts.json" "$OUT/measured.json"
	rm -f "$OUT/acts.jsonl"
}
