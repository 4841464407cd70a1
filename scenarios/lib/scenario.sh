# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2034,SC2154 # what scenarios/run, case.sh and scenarios use or set
#
# What scenarios share on the host's side.  scenarios/run has sourced case.sh
# and vm.sh before this file, and set SC_NAME, OUT.
#
# A scenario's guest talks through lines on its result port:
#
#	ok N - …, not ok N - …		checks made in the guest
#	@transfer LABEL JSON		what `peerlane io` says about a transfer
#	@fact KEY JSON, @list …, @text …	anything else that expectations ask for, see facts_from
#
# and through the host channel, around what is to be counted:
#
#	host begin LABEL		remember counters and the trace's place
#	host end LABEL

sc_devices_of=

# shellcheck source=scenarios/lib/accounting/judge.sh
. "$TOP/scenarios/lib/accounting/judge.sh"

sc_begin() {
	VM_TRACE=${VM_TRACE:-$VM_TRACE_NVME}
	SC_TITLE=$(scenario_says "$SC_NAME" title)
	SC_GUEST=$TOP/scenarios/$SC_NAME/guest
	: >"$OUT/conditions"
	SC_OWN=1
	sc_topology=$(scenario_says "$SC_NAME" machine)
	[ "${SC_TOPOLOGY:-$sc_topology}" = "$sc_topology" ] || SC_OWN=
	SC_TOPOLOGY=${SC_TOPOLOGY:-$sc_topology}
	sc_kernel=$(scenario_says "$SC_NAME" kernel)
	: "${sc_kernel:=7.2}"
	SC_KERNEL=${SC_KERNEL:-$sc_kernel}
	# a debug kernel behaves like the one that it stands in for
	[ "${SC_KERNEL%-*}" = "$sc_kernel" ] || SC_OWN=
	SC_SOURCE=$WORK/data
	SC_BLOCKS=
	SC_HOSTS=
	read -r sc_started sc_idle </proc/uptime
	: "$sc_idle"
	: >"$OUT/extra.jsonl"
	SC_DEVICES=$(sc_devices_json)
	sc_add --argjson devices "$SC_DEVICES" '{$devices}'
	at_exit sc_end

	need_tool jq cpio flock
	need_file "$QEMU" "$BUILD/guest/$SC_KERNEL/base.cpio"
	sc_build
}

# sc_build: mkdata and the guest programs, by one run at a time.  A bundle has them.
sc_build() {
	mkdir -p "$SC_SOURCE"
	MKDATA=$BUILD/scenarios/mkdata
	[ ! -e "$TOP/BUNDLE" ] || return 0
	need_tool make
	mkdir -p "$BUILD/scenarios"
	if ! flock "$BUILD/scenarios" make -s -C "$TOP/scenarios" TOP="$TOP" \
		O="$BUILD/scenarios" >"$OUT/make.log" 2>&1; then
		fail "the scenario's programs are built" "$(tail -n 20 "$OUT/make.log")"
		finish
	fi
}

# sc_data BYTES: SC_DATA, a file of pseudo-random data, and SC_CRC
sc_data() {
	SC_DATA=$SC_SOURCE/data-$1
	(
		flock 6
		[ -s "$SC_DATA.crc" ] && exit
		"$MKDATA" gen 1 "$1" >"$SC_DATA" &&
			"$MKDATA" crc "$SC_DATA" >"$SC_DATA.crc.new" &&
			mv "$SC_DATA.crc.new" "$SC_DATA.crc"
	) 6>"$SC_SOURCE/lock" 2>"$OUT/mkdata.log"
	if [ ! -s "$SC_DATA.crc" ]; then
		fail "the data is made" "$(cat "$OUT/mkdata.log")"
		finish
	fi
	SC_CRC=$(cat "$SC_DATA.crc")
}

# sc_copy FILE FILE: an image, or an empty one
sc_copy() {
	sc_got=$(cp --reflink=auto --sparse=always "$1" "$2" 2>&1) && return
	fail "${2##*/} is made" "$sc_got"
	finish
}

# sc_disk FS BYTES TOTAL: $OUT/disk0.img with the file system FS (ext4, xfs,
# raw) of TOTAL bytes and the file "data" of BYTES in it
sc_disk() {
	[ -n "$(sc_drive_of disk0)" ] ||
		skip "the topology $SC_TOPOLOGY has no drive for the image disk0"
	sc_data "$2"
	sc_base=$SC_SOURCE/disk-$1-$2-$3.img
	(
		flock 6
		[ -e "$sc_base" ] && exit
		rm -f "$sc_base.new"
		truncate -s "$3" "$sc_base.new" || exit 1
		case $1 in
		ext4)
			mkdir -p "$SC_SOURCE/tree-$2" || exit 1
			ln -f "$SC_DATA" "$SC_SOURCE/tree-$2/data" || exit 1
			mke2fs -q -t ext4 -b 4096 -E lazy_itable_init=0,root_owner=0:0 \
				-d "$SC_SOURCE/tree-$2" "$sc_base.new" || exit 1
			;;
		xfs)
			printf '%s\n' / '0 0' 'd--755 0 0' \
				"data ---644 0 0 $SC_DATA" '$' >"$SC_SOURCE/proto-$2"
			mkfs.xfs -q -p "$SC_SOURCE/proto-$2" "$sc_base.new" || exit 1
			;;
		raw)
			dd if="$SC_DATA" of="$sc_base.new" bs=1M conv=notrunc \
				status=none || exit 1
			;;
		*) exit 1 ;;
		esac
		mv "$sc_base.new" "$sc_base"
	) 6>"$SC_SOURCE/lock" >"$OUT/mkfs.log" 2>&1
	if [ ! -e "$sc_base" ]; then
		fail "the disk image is made" "$(cat "$OUT/mkfs.log")"
		finish
	fi
	sc_copy "$sc_base" "$OUT/disk0.img"
	vm_image disk0 "$OUT/disk0.img" "${4-}"
}

# sc_blocks FS FILE: where the file's data lies on the image, as
# "FIRST:COUNT …" in 512-byte blocks; the guest has ended
sc_blocks() {
	case $1 in
	ext4)
		sc_block=$(dumpe2fs -h "$OUT/disk0.img" 2>/dev/null |
			awk '/^Block size:/ { print $3 }')
		debugfs -R "ex /$2" "$OUT/disk0.img" 2>/dev/null |
			awk -v unit=$((sc_block / 512)) '
		# Level Entries Logical Physical Length Flags; leaves only
		$1 ~ /^[0-9]+\/$/ {
			gsub(/\//, " ")
			gsub(/-/, " ")
			if ($1 == $2)
				printf "%.0f:%.0f ", $7 * unit, ($8 - $7 + 1) * unit
		}'
		;;
	xfs)
		xfs_db -r -c "path /$2" -c 'bmap' "$OUT/disk0.img" 2>/dev/null |
			awk '{
				for (i = 1; i < NF; i++) {
					if ($i == "startblock")
						start = $(i + 1)
					if ($i == "count")
						count = $(i + 1)
				}
				print start, count
			}' | while read -r sc_start sc_count; do
			sc_daddr=$(xfs_db -r -c "convert fsblock $sc_start daddr" \
				"$OUT/disk0.img" | sed 's/.*(\([0-9]*\)).*/\1/')
			printf '%s:%s ' "$sc_daddr" $((sc_count * 8))
		done
		;;
	esac
}

# sc_block_at FS FILE OFFSET: the 512-byte block of the image that has this place of the file
sc_block_at() {
	for sc_extent in $(sc_blocks "$1" "$2"); do
		echo "${sc_extent%:*} ${sc_extent#*:}"
	done | awk -v left=$(($3 / 512)) '
	{
		if (left < $2) {
			print $1 + left
			exit
		}
		left -= $2
	}'
}

# sc_data_blocks FS FILE…: these files are the data; all else is metadata
sc_data_blocks() {
	sc_fs=$1
	shift
	SC_BLOCKS=
	for sc_file in "$@"; do
		SC_BLOCKS="$SC_BLOCKS$(sc_blocks "$sc_fs" "$sc_file")"
	done
}

# sc_take_out FS FILE TARGET BYTES: read a file of the image without the guest
sc_take_out() {
	case $1 in
	ext4)
		debugfs -R "dump /$2 $3" "$OUT/disk0.img" >/dev/null 2>&1
		;;
	xfs)
		: >"$3"
		sc_done=0
		for sc_extent in $(sc_blocks xfs "$2"); do
			dd if="$OUT/disk0.img" of="$3" bs=1M iflag=skip_bytes,count_bytes \
				oflag=seek_bytes seek="$sc_done" conv=notrunc status=none \
				skip=$((${sc_extent%:*} * 512)) \
				count=$((${sc_extent#*:} * 512)) || return 1
			sc_done=$((sc_done + ${sc_extent#*:} * 512))
		done
		truncate -s "$4" "$3"
		;;
	esac
}

# guest [LIBRARY]: the guest does what this file of scenarios/lib/guest does, or the script
# on standard input.  Without it, the script is scenarios/NAME/guest.
guest() {
	SC_GUEST=$OUT/guest.sh
	{
		echo '#!/bin/sh'
		if [ $# -gt 0 ]; then
			echo ". /case/lib/$1.sh"
		else
			cat
		fi
	} >"$SC_GUEST"
}

# sc_case: the guest's part, in $OUT/case
sc_case() {
	rm -rf "$OUT/case"
	mkdir -p "$OUT/case/lib"
	cp "$SC_GUEST" "$OUT/case/run"
	chmod +x "$OUT/case/run"
	cp "$TOP"/scenarios/lib/guest/*.sh "$OUT/case/lib/"
	for sc_file in "$@"; do
		cp "$sc_file" "$OUT/case/"
	done
}

# sc_modules NAME…: what the guest loads, and what these need before them
sc_modules() {
	{
		# before 6.14 file systems find their checksum by its name only
		case $SC_KERNEL in
		6.1 | 6.12 | 6.12-*) echo crc32c_generic ;;
		esac
		printf "%s\n" "$@"
	} >"$OUT/case/modules"
}

# sc_boot SECONDS [QEMU-ARGS…]: run the guest to its end
sc_boot() {
	sc_limit=$1
	shift
	vm_allow '^[^:]*Speculative Return Stack Overflow: WARNING: See' \
		'an emulated EPYC has no microcode that cures it'
	vm_start guest "$SC_TOPOLOGY" "$SC_KERNEL" "$OUT/case" "$@"
	sc_status=$?
	if [ "$sc_status" -eq 0 ]; then
		vm_wait guest "$sc_limit"
		sc_status=$?
	fi
	[ ! -e "$OUT/guest/result.log" ] || ktap_from "$OUT/guest/result.log"
	sc_ended guest "$sc_status" "the guest" || finish
}

# sc_ended GUEST STATUS WHO: says how it ended; fails when that was not well
sc_ended() {
	if [ "$2" -ne 0 ]; then
		fail "$3 ran to its end and its kernel was content" \
			"status $2 (99 console, 124 time, 125 no status); its last lines:
$(tail -n 15 "$OUT/$1/result.log" 2>/dev/null)"
		return 1
	fi
	pass "$3 ran to its end and its kernel was content"
}

# --- a power cut -----------------------------------------------------------
#
# A drive has accepted what its host wrote before it is on the medium.  The image
# QEMU writes to has all of it, also when QEMU is killed; so the drive as it is
# after a cut is made of the image from before and a log of what was written.

# sc_volatile IMAGE…: before a guest starts: its drives have a volatile cache
sc_volatile() {
	for sc_each; do
		sc_copy "$OUT/$sc_each.img" "$OUT/$sc_each-before.img"
		sc_copy /dev/null "$OUT/$sc_each-writes.img"
		vm_image "$sc_each" "$OUT/$sc_each.img" "" "$OUT/$sc_each-writes.img"
	done
}

# sc_until_cut GUEST SECONDS: until it has asked for the cut: $OUT/cut is there
sc_until_cut() {
	read -r sc_now sc_idle </proc/uptime
	sc_until=$((${sc_now%.*} + $2))
	while [ ! -e "$OUT/cut" ] && [ ! -e "$OUT/$1/qemu.rc" ] && [ "${sc_now%.*}" -lt "$sc_until" ]; do
		sleep 0.05
		read -r sc_now sc_idle </proc/uptime
	done
	check_false "$1: until then nothing went wrong" grep '^not ok' "$OUT/$1/result.log"
	[ -e "$OUT/cut" ] && return
	fail "$1: the cut is asked for" "$(tail -n 15 "$OUT/$1/result.log")"
	vm_stop "$1"
	vm_scan "$1"
	finish
}

# sc_power_cut GUEST SEED IMAGE…: the guest ends, and its drives have lost what was
# not flushed (power-cut.c).  QEMU is not killed, since an entry of the log may be
# half written; what it writes while it ends is behind the cut.
sc_power_cut() {
	sc_guest=$1
	sc_seed=$2
	shift 2
	for sc_each; do
		stat -c %s "$OUT/$sc_each-writes.img" >"$OUT/$sc_each-cut"
	done
	# that the emulator has ended counts, not whether its last word came through
	vm_qmp "$sc_guest" '{"execute":"quit"}' >/dev/null
	check "the power is cut" timeout --foreground 60 tail --pid="$(cat "$OUT/$sc_guest/qemu.pid")" -s 0.05 -f /dev/null
	vm_stop "$sc_guest"
	check "the kernel was content" vm_scan "$sc_guest"
	for sc_each; do
		if ! sc_got=$("$BUILD/scenarios/power-cut" "$OUT/$sc_each-before.img" "$OUT/$sc_each-writes.img" \
			"$(cat "$OUT/$sc_each-cut")" "$sc_seed" 2>&1); then
			fail "$sc_each: what the drive has kept" "$sc_got"
			finish
		fi
		diag "$sc_each: $sc_got"
		mv "$OUT/$sc_each-before.img" "$OUT/$sc_each.img"
		rm -f "$OUT/$sc_each-cut" "$OUT/$sc_each-writes.img"
	done
}

# --- counting --------------------------------------------------------------

# sc_devices: the topology's devices, "NAME KIND PARENT KEY=VALUE…"
sc_devices() {
	# asked often
	[ "$sc_devices_of" = "$SC_TOPOLOGY" ] || {
		sc_devices_all=$(topology devices "$SC_TOPOLOGY") || return
		sc_devices_of=$SC_TOPOLOGY
	}
	printf '%s\n' "$sc_devices_all"
}

# the same as JSON: [{name, kind, parent, KEY: VALUE…}]
sc_devices_json() {
	sc_devices | jq -Rnc '[inputs | split(" ") |
		{name: .[0], kind: .[1], parent: .[2]} + (.[3:] | map(split("=")
			| {key: .[0], value: (.[1:] | join("="))}) | from_entries)]'
}

# the GPUs of the topology
sc_gpus() {
	sc_devices | awk '$2 == "gpu" { print $1 }'
}

# sc_drive_of IMAGE: the drive that has it
sc_drive_of() {
	sc_devices | awk -v image="image=$1" '
	$2 == "nvme" {
		for (i = 4; i <= NF; i++)
			if ($i == image)
				print $1
	}'
}

# the ConnectX cards of the topology
sc_cards() {
	sc_devices | awk '$2 == "cx" { print $1 }'
}

# the ports that count bytes: a peerlane-switch's own, and those below it that
# hold a device
sc_ports() {
	sc_devices | awk '
	$2 == "switch" && / model=peerlane( |$)/ {
		counts[$1] = 1
		print $1
	}
	{
		switch = $3
		if (sub(/[.][0-9]+$/, "", switch) && switch in counts)
			print $3
	}'
}

# switches whose links are modelled
sc_modelled() {
	sc_devices | awk '$2 == "switch" && / gen=/ { print $1 }'
}

# sc_know GUEST: where its GPUs have their BAR1, and the QMP commands that look at all devices,
# and that restart the books of modelled links
sc_know() {
	[ ! -e "$OUT/$1/bars" ] || return 0
	sc_books=" $(sc_modelled | tr '\n' ' ')"
	{
		sc_uplinks | sed 's/.*/before & & counters/'
		sc_gpus | sed 's/.*/gpu & & counters\ngpu & & initiators/'
		sc_cards | sed 's/.*/cx & & counters/'
		for sc_port in $(sc_ports); do
			echo "port $sc_port $sc_port counters"
			case $sc_books in
			*" ${sc_port%.*} "*) echo "port $sc_port $sc_port modelled" ;;
			esac
		done
		sc_modelled | sed 's/.*/requesters & & modelled-requesters/'
		sc_uplinks | sed 's/.*/after & & counters/'
	} >"$OUT/$1/looks"
	jq -Rc 'split(" ") | {execute: "qom-get", arguments: {path: "/machine/peripheral/\(.[2])", property: .[3]}}' \
		"$OUT/$1/looks" >"$OUT/$1/looks.qmp"
	sc_modelled | jq -Rc '{execute: "qom-set",
		arguments: {path: "/machine/peripheral/\(.)", property: "modelled-restart", value: true}}' >"$OUT/$1/restart.qmp"
	for sc_gpu in $(sc_gpus); do
		vm_bar "$1" "$sc_gpu" 1 | while read -r sc_base sc_size; do
			printf '%s:%s:%s ' "$sc_base" "$sc_size" "$sc_gpu"
		done
	done >"$OUT/$1/bars"
}

# host commands, answered while the guest waits
host_begin() {
	sc_know "$1"
	# modelled bandwidth is of one label
	if [ -s "$OUT/$1/restart.qmp" ] && ! sc_got=$(vm_qmp_file "$1" "$OUT/$1/restart.qmp"); then
		echo "error: the books of the modelled links go on: $sc_got"
		return
	fi
	sc_look_at "$1" "$2.begin"
}

host_end() {
	sc_look_at "$1" "$2.end"
}

# sc_look_at GUEST MARK: all devices, and the wire if there is one
sc_look_at() {
	if [ -n "$SC_HOSTS" ]; then
		hosts_look "$1" "$2" || return
	fi
	sc_snapshot "$1" "$2"
}

# sc_snapshot GUEST MARK: what all devices have counted (links.jq: looked).  The numbers belong
# together when nothing passed the switches meanwhile; {kind: "moving"} says
# that something did, five times.
sc_snapshot() {
	sc_tries=0
	while [ "$sc_tries" -lt 5 ]; do
		sc_tries=$((sc_tries + 1))
		vm_qmp_file "$1" "$OUT/$1/looks.qmp" >"$OUT/$1/$2.raw"
		jq -L "$VM_ACCOUNTING" -nc --rawfile looks "$OUT/$1/looks" 'include "links"; looked([inputs]; $looks)' \
			"$OUT/$1/$2.raw" >"$OUT/$1/$2.counted" 2>"$OUT/$1/$2.err" ||
			{ echo "error: $(tail -n 1 "$OUT/$1/$2.err" "$OUT/$1/$2.raw")"; return; }
		grep -q '"moving"' "$OUT/$1/$2.counted" || break
	done
	rm -f "$OUT/$1/$2.raw" "$OUT/$1/$2.err"
	vm_mark "$1" "$2"
	echo ok
}

# sc_uplinks: the ports through which all passes between switches and the root complex
sc_uplinks() {
	sc_ports | grep -vF .
}

# sc_counted GUEST LABEL: what the devices counted between begin and end, {counted: {LABEL: …}} with
# {nvme: what nvme_route_bytes prints, gpus: {gpu0: {counter: difference}}, cx: the same,
# initiators: {gpu0: {nvme0: {read, write}}}, links: links.jq's list}
sc_counted() {
	sc_routes=$(vm_trace "$1" "$2.begin" "$2.end" |
		nvme_route_bytes "$(cat "$OUT/$1/bars")" "$SC_BLOCKS")
	jq -L "$VM_ACCOUNTING" -nc --slurpfile a "$OUT/$1/$2.begin.counted" \
		--slurpfile b "$OUT/$1/$2.end.counted" \
		--argjson devices "$SC_DEVICES" --argjson nvme "$sc_routes" \
		--arg label "$2" 'include "links"; {counted: {($label): counted($a; $b; $devices; $nvme)}}'
}

# --- results ---------------------------------------------------------------

# sc_add [JQ-OPTIONS…] JQ-EXPRESSION: an object whose keys go into the result
sc_add() {
	jq -nc "$@" >>"$OUT/extra.jsonl"
}

# sc_measure: the result of all labels, in $OUT/measured.json.  Call it when
# the guest has ended and SC_BLOCKS is known.
sc_measure() {
	if [ -n "$SC_HOSTS" ]; then
		hosts_measure
	else
		sc_measure_guest guest "$OUT/extra.jsonl" "$OUT/measured.json" ""
	fi
}

# sc_measure_guest GUEST EXTRA RESULT PREFIX: EXTRA has keys for the result, and
# gets more; PREFIX is of the checks
sc_measure_guest() {
	sed -n 's/\r$//; s/^@transfer //p' "$OUT/$1/result.log" >"$OUT/transfers"
	if sc_facts=$(facts_from "$OUT/$1/result.log" 2>&1); then
		printf '%s\n' "$sc_facts" | jq -c 'select(. != {}) | {facts: .}' >>"$2"
	else
		fail "${4}the guest's facts can be read" "$sc_facts"
	fi
	awk -F '\t' 'sub(/[.]begin$/, "", $1) { print $1 }' \
		"$OUT/$1/trace.marks" | sort -u >"$OUT/labels"
	while read -r sc_label; do
		sc_counted "$1" "$sc_label" >>"$2" || fail "${4}what was counted of $sc_label can be read"
	done <"$OUT/labels"
	jq -L "$VM_ACCOUNTING" -sc 'include "links"; reduce .[] as $x ({}; . * $x)
		| .links = ([(.counted // {})[].links] | links_sum)' \
		"$2" >"$OUT/extra.json" || fail "${4}what was counted can be put together"

	# A drive's bytes are told apart by direction, so one label can hold one
	# transfer of each.  host_bytes is file data that the drive moved to or from
	# host memory.
	sc_drive=$(sc_drive_of disk0)
	: >"$OUT/transfers.jsonl"
	while read -r sc_label sc_value; do
		jq -nc --arg label "$sc_label" --arg drive "$sc_drive" \
			--argjson t "$sc_value" --slurpfile extra "$OUT/extra.json" '
		($extra[0].counted[$label]) as $c | ($t.what) as $what |
		(if $what | IN("write", "rdma-source") then "write" else "read" end) as $dir |
		$t + {label: $label,
		 # an RDMA device that is software moves nothing by DMA: what is staged,
		 # the engine of the GPU copies
		 host_bytes: (if $what | startswith("rdma-")
		   then [$c.gpus[]["engine-host-" + $dir]] | add
		   else $c.nvme.host.data[$dir] end),
		 metadata_bytes: $c.nvme.host.metadata[$dir],
		 routes: ([(($c.gpus | keys[]) as $g | $c.initiators[$g] | to_entries[]
		   | {from: .key, to: $g,
		    bytes: .value[if $dir == "read" then "write" else "read" end],
		    what: "peer-to-peer DMA"}),
		  # of several drives, the one that moved most to or from host memory
		  {from: ([$extra[0].devices[] | select(.kind == "nvme").name] as $drives
		   | [$c.links[] | select(.below | IN($drives[]))
		    | {below, bytes: .host[if $dir == "read" then "up" else "down" end]}
		    | select(.bytes)] | max_by(.bytes).below // $drive), to: "memory",
		   bytes: $c.nvme.host.data[$dir], what: "DMA to host memory"},
		  (($c.gpus | keys[]) as $g | {from: "memory", to: $g,
		   bytes: $c.gpus[$g]["engine-host-" + $dir],
		   what: "copied by the GPU\u0027s engine"})]
		  | map(select(.bytes >= 65536))
		  | map(if $dir == "write" then . + {from: .to, to: .from} else . end))}
		' >>"$OUT/transfers.jsonl" 2>"$OUT/transfers.err" ||
			fail "${4}the transfer of $sc_label is counted" \
				"$sc_value
$(cat "$OUT/transfers.err")"
	done <"$OUT/transfers"
	jq -sc . "$OUT/transfers.jsonl" >"$OUT/transfers.json"
	jq -c --slurpfile t "$OUT/transfers.json" '
		. + {transfers: ($t[0] | map(del(.routes))),
		     routes: [$t[0][].routes[]]}' "$OUT/extra.json" >"$3"
	check_eq "${4}what the links carried adds up" '' \
		"$(jq -r -L "$VM_ACCOUNTING" 'include "links"; .devices as $d |
			(.counted // {}) | to_entries[] | .key as $label |
			.value | inconsistent($d)[] | "\($label): \(.)"' \
			"$3" 2>&1)"
}

# expect SET… [-]: conditions of scenarios/lib/conditions, and with - more from standard input
expect() {
	for sc_set; do
		if [ "$sc_set" = - ]; then
			cat
		else
			cat "$TOP/scenarios/lib/conditions/$sc_set" ||
				fail "there is a set of conditions $sc_set"
		fi
	done >>"$OUT/conditions"
}

# sc_expect: the conditions, each a check:
#	always | DESCRIPTION | JQ-CONDITION	on every machine
#	here | DESCRIPTION | JQ-CONDITION	on this scenario's own machine
sc_expect() {
	sc_failed=$case_failed
	[ -e "$OUT/measured.json" ] || sc_measure
	while IFS= read -r sc_line; do
		case $sc_line in
		'#'* | '') ;;
		'always | '*' | '*) printf '%s\n' "$sc_line" ;;
		'here | '*' | '*) [ -z "$SC_OWN" ] || printf '%s\n' "$sc_line" ;;
		*)
			fail "a line of expect can be read" "$sc_line
it is \"always | WHAT IT CLAIMS | CONDITION\", or \"here | ...\", with one blank on each side of the two |" >&3
			;;
		esac
	done <"$OUT/conditions" 3>&1 >"$OUT/asked"
	[ ! -s "$OUT/asked" ] || sc_judge "$OUT/asked"
	[ "$case_failed" -eq "$sc_failed" ] ||
		diag "the result: $(jq -c . "$OUT/measured.json")"
}

# sc_judge FILE: each of its conditions holds, and asks for something.  Of no result none does.
sc_judge() {
	if judge "$1" "$OUT/measured.json" >"$OUT/judged" 2>"$OUT/judge.err" && [ -s "$OUT/judged" ]; then
		jq -r --rawfile lines "$1" '[[$lines | split("\n")[:-1][] | capture("^.*? [|] (?<claim>.*?) [|] (?<text>.*)$")], .]
			| transpose | (to_entries[] | (.key + 1) as $n | .value as [$asked, $wrong] |
			if $wrong == "" then "ok \($n) - \($asked.claim)" else "not ok \($n) - \($asked.claim)",
				("condition: \($asked.text)\n\($wrong)" | split("\n")[] | "# \(.)") end), "1..\(length)"' \
			"$OUT/judged" >"$OUT/judged.ktap"
		ktap_from "$OUT/judged.ktap"
	elif [ "$(wc -l <"$1")" -gt 1 ]; then
		# One of them is no program
		while IFS= read -r sc_line; do
			printf '%s\n' "$sc_line" >"$OUT/asked-one"
			sc_judge "$OUT/asked-one"
		done <"$1"
	else
		sc_line=$(cat "$1")
		sc_line=${sc_line#* | }
		fail "${sc_line%% | *}" "condition: ${sc_line#* | }
$(cat "$OUT/judge.err")"
	fi
}

# what nobody looks at when the run has ended
sc_tidy() {
	rm -f "$OUT/measured.json" "$OUT/extra.jsonl" "$OUT/extra.json" \
		"$OUT/labels" "$OUT"/transfers* "$OUT/conditions" "$OUT"/asked* "$OUT"/judge* "$OUT/.check" \
		"$OUT/.ktap" "$OUT/guest.sh" "$OUT/make.log" "$OUT/mkdata.log" "$OUT/mkfs.log"
	rm -rf "$OUT/case"
}

sc_drop_images() {
	[ -n "$SC_KEEP" ] || rm -f "$OUT"/*.img "$OUT"/*/*.img "$OUT"/taken-out*
}

# sc_write_result: $OUT/result.json
sc_write_result() {
	sc_verdict=fail
	[ "$case_status" -ne 0 ] || sc_verdict=pass
	[ "$case_status" -ne 77 ] || sc_verdict=skip
	[ -s "$OUT/measured.json" ] || echo '{}' >"$OUT/measured.json"
	jq -c --arg scenario "$SC_NAME" --arg topology "$SC_TOPOLOGY" \
		--arg kernel "$SC_KERNEL" \
		--arg accel "$(vm_accel | sed 's/,.*//; s/^kvm$/kvm, untested/')" \
		--arg title "$SC_TITLE" \
		--arg verdict "$sc_verdict" --argjson passed \
		$((case_checks - case_failed)) --argjson failed "$case_failed" \
		--argjson devices "$SC_DEVICES" --arg reason "$case_reason" \
		--argjson seconds "$(echo "$sc_started $sc_ended" |
			awk '{ printf "%.2f", $2 - $1 }')" '
		{scenario: $scenario, title: $title, topology: $topology,
		 kernel: $kernel, accel: $accel, verdict: $verdict, reason: $reason,
		 seconds: $seconds,
		 checks: {passed: $passed, failed: $failed}, transfers: [],
		 routes: [], devices: $devices, links: []} + .' \
		"$OUT/measured.json" >"$OUT/result.json"
}

# the result is written however the run ends
sc_end() {
	read -r sc_ended sc_idle </proc/uptime
	sc_write_result
	sc_unfit=$(jq -r -L "$VM_ACCOUNTING" 'include "result"; unfit' "$OUT/result.json" 2>&1)
	if [ -n "$sc_unfit" ]; then
		fail "the result is as docs/reference/results.md describes it" "$sc_unfit"
		case $case_status in
		0 | 77) case_status=1 ;;
		esac
		sc_write_result
	fi
	sc_tidy
	# of a run that was interrupted nobody looks at them
	if [ "$sc_verdict" != fail ] || [ "$case_status" -gt 128 ]; then
		sc_drop_images
	fi
	if [ -n "$SC_JSON" ] && [ "$SC_JSON" != "$OUT/result.json" ]; then
		cp "$OUT/result.json" "$SC_JSON"
	fi
}
