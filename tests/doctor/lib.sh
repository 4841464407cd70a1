# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2034 # for the cases, and for vm.sh
#
# Records of machines, made of short lines; sourced after case.sh.
#
# A description is a peerlane-record(5) with one more kind of line:
#
#	C ADDRESS VENDOR:DEVICE KIND [ACS-CAPABILITY ACS-CONTROL]
#
# is the config space, of 4096 bytes, of a function of that KIND: endpoint,
# root, upstream, downstream; without the last two words it has no ACS.  @PCI,
# @SWITCH and @DISK stand for folders of sysfs.

need_tool jq
tool=$BUILD/userlib/peerlane
need_file "$tool"
base=$TOP/tests/doctor/healthy.desc

# record BASE PATCH…: a record of BASE, changed by the patches in turn.  A line
# of a patch takes the place of the same kind of line about the same path; an E
# line that of all lines about it; "- PATH" only removes them.
record() {
	awk '
	function byte(n) { return sprintf("%02x", n) }
	function le(hex) { return substr(hex, 3, 2) substr(hex, 1, 2) }
	function zeros(n,   s) {
		for (s = ""; n > 0; n--)
			s = s "00"
		return s
	}
	function config(   id, s, kind) {
		split($3, id, ":")
		kind["endpoint"] = "02"; kind["root"] = "42"
		kind["upstream"] = "52"; kind["downstream"] = "62"
		s = le(id[1]) le(id[2]) "0000" "1000" zeros(44) "40" zeros(11)
		s = s "1000" kind[$4] "00" zeros(188)
		if (NF > 4)
			s = s "0d000100" le($5) le($6)
		return "X /sys/bus/pci/devices/" $2 "/config " s \
			zeros(4096 - length(s) / 2)
	}
	/^#/ || !NF || $1 == "V" { next }
	{
		gsub(/@PCI/, "/sys/bus/pci/devices")
		gsub(/@DISK/, "@SWITCH/0000:02:01.0/0000:04:00.0/nvme/nvme0/nvme0n1")
		gsub(/@SWITCH/, "/sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0")
	}
	$1 == "C" { $0 = config() }
	$1 == "-" || $1 == "E" {
		split("F X L D E", all, " ")
		for (i in all)
			delete line[all[i] " " $2]
		if ($1 == "-")
			next
	}
	$1 ~ /^[FXLD]$/ { delete line["E " $2] }
	{
		key = $1 " " $2
		if (!(key in seen)) {
			seen[key] = ++n
			name[n] = key
		}
		line[key] = $0
	}
	END {
		print "# SPDX-License-Identifier: MIT\nV 1"
		for (i = 1; i <= n; i++)
			if (name[i] in line)
				print line[name[i]]
	}' "$@"
}

# doctor STATUS ARGS…: runs it, its output in out and err; JSON must be as its schema says
doctor() {
	doctor_want=$1
	shift
	"$tool" doctor "$@" >out 2>err
	check_eq "status $doctor_want: peerlane doctor $*" "$doctor_want" "$?" ||
		sed 's/^/# /' err
	case " $* " in
	*" --list "*) ;;
	*" --json "*) [ "$doctor_want" -gt 2 ] || in_shape out ;;
	esac
}

# The schema lets versions to come add keys; this version has those that are in it
jq 'walk(if type == "object" and (.properties | type) == "object" then {additionalProperties: false} + . else . end)' \
	"$TOP/docs/reference/doctor.schema.json" >doctor.schema.json

# in_shape FILE…: as docs/reference/doctor.schema.json says, and without another key
in_shape() {
	shape_said=$(jq -r --slurpfile schema "$OUT/doctor.schema.json" \
		-f "$TOP/tests/doctor/schema.jq" "$@" 2>&1)
	[ -z "$shape_said" ] || fail "the shape that the schema tells" "$shape_said"
}

# json DESC CONDITION: about the JSON in out
json() {
	check "$1" jq -e "$2" out
}

# ---- guests ----

# foretold NAME TOPOLOGY KERNEL COMMAND-LINE VARIABLE=VALUE [QEMU-ARGUMENT…]:
# boots guest/foretell with this in its environment, and takes over what it reports
foretold() {
	now=$1
	rm -rf case
	mkdir -p case/lib
	cp "$TOP/tests/doctor/guest/foretell" case/run
	chmod +x case/run
	cp "$TOP/scenarios/lib/guest/guest.sh" case/lib/
	printf 'BYTES=1048576\n%s\n' "$5" >case/env
	printf '%s\n' nvme peerlane_gpu >case/modules
	truncate -s 256M disk.img
	vm_images=
	vm_image disk0 "$OUT/disk.img"
	VM_TRACE='' VM_CMDLINE=$4
	foretold_topo=$2
	foretold_kernel=$3
	shift 5
	vm_run "$now" "$foretold_topo" "$foretold_kernel" "$OUT/case" 120 "$@"
	guest_rc=$?
	ktap_from "$OUT/$now/result.log" "$now"
	check_eq "$now: the guest is content" 0 "$guest_rc"
	foretold_facts
}

# foretold_facts: what guest/foretell reported in the guest $now: NAME.json is a list of
# its facts about files, NAME-machine.json those about the machine
foretold_facts() {
	facts_from "$OUT/$now/result.log" >"$now-facts.json"
	jq -c '.foretold // []' "$now-facts.json" >"$now.json"
	jq -c .machine "$now-facts.json" >"$now-machine.json"
	diag "$now: $(jq -c 'map([.label, .doctor.answer.path, .io.path])' "$now.json")"
}

# agrees: what doctor foretold in the last guest is what happened there
agrees() {
	is "the library took the path that doctor had foretold, every time" '
		length > 0 and all(.io.path == .doctor.answer.path)'
	is "and the GPU counted it" 'all(
		(.after["bar1-dma-write"] - .before["bar1-dma-write"]) ==
		(if .io.path == "p2p" then .io.bytes else 0 end))'
	is "the exit status tells it, too" 'all(.moved == 0 and
		(.status == 2) == (.io.path != "p2p"))'
}

# is DESC CONDITION, machine DESC CONDITION: about the last guest
is() {
	check "$now: $1" jq -e "$2" "$now.json"
}
machine() {
	check "$now: $1" jq -e "$2" "$now-machine.json"
}

# known_nodes: healthy.rec, staged.rec, whose switch sends what goes between its devices upwards, and dgx.rec, which does too
known_nodes() {
	record "$base" >healthy.rec
	echo "C 0000:02:01.0 10b5:8747 downstream 005f 001d" >staged.patch
	record "$base" staged.patch >staged.rec
	awk -v acs=001d -f "$TOP/tests/topo/record.awk" "$TOP/tests/topo/records/dgx-a100.map" >dgx.rec
}
