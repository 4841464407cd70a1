# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2034,SC2154 # for scenario.sh and vm.sh, and from there
#
# Several hosts with a wire between them; a scenario's "run" sources this file.
#
#	hosts_case [FILE…]		the guests' part, one for all hosts
#	hosts_image HOST DRIVE FILE	a drive's image; those of vm_image and sc_disk
#					are of host a
#	hosts_nic HOST DEVICE		its network card, without address and cable, if not virtio
#	hosts_boot SECONDS N [TOPOLOGY…]	N hosts, called a, b, c …, to their end
#	hosts_start N [TOPOLOGY…]	the same in two halves, for scenarios that act
#	hosts_wait SECONDS		in between
#	wire HOST COMMAND…		order the wire: wire a loss 1%
#
# Of several topologies the last is of all further hosts; none: the scenario's.
# docs/how-to/two-hosts.md describes all of it, and the guest's side.
#
# Environment: WIRE_SEED is the seed of the wire's faults, WIRE_PCAP=1 keeps what
# each cable carried in $OUT/wire/HOST.pcap.

WIRE=$BUILD/wire/peerlane-wire
HOSTS_MAX=8
SC_HOSTS=
hosts_dir=$OUT/hosts
hosts_images=
hosts_nics=

# hosts_case [FILE…]: as sc_case, with what a host on the wire needs
hosts_case() {
	sc_case "$@" "$BUILD/scenarios/patience.so"
	echo rdma >"$OUT/case/extras"
	hosts_driver=
	if sc_devices | grep -q '^[^ ]* cx '; then
		echo mlx5 >>"$OUT/case/extras"
		hosts_driver=mlx5_ib
	fi
	# shellcheck disable=SC2086 # a word, or none
	sc_modules virtio_net rdma_rxe $hosts_driver ib_uverbs nvme peerlane_gpu
}

hosts_image() {
	hosts_images="$hosts_images $1=$2=$3"
}

hosts_nic() {
	hosts_nics="$hosts_nics $1=$2"
}

# hosts_start N [TOPOLOGY…]
hosts_start() {
	case $1 in
	[2-8]) ;;
	*) fail "a wire has 2 to $HOSTS_MAX hosts" "not $1"; finish ;;
	esac
	hosts_count=$1
	shift
	: "${HOSTS_PATIENCE:=120}"
	need_file "$WIRE" "$BUILD/guest/$SC_KERNEL/rdma.cpio"
	vm_allow '^[^:]*Speculative Return Stack Overflow: WARNING: See' \
		'an emulated EPYC has no microcode that cures it'
	hosts_began=$(hosts_busy)
	at_exit wire_kill
	vm_guard
	rm -rf "$hosts_dir"
	mkdir -p "$hosts_dir/barrier" "$hosts_dir/key"
	hosts_of_a=$vm_images
	hosts_cmdline=$VM_CMDLINE
	SC_HOSTS=
	hosts_own=$SC_TOPOLOGY
	hosts_index=0
	hosts_lan=
	: >"$hosts_dir/topologies"
	for hosts_each in a b c d e f g h; do
		[ "$hosts_index" -lt "$hosts_count" ] || break
		SC_HOSTS="$SC_HOSTS${SC_HOSTS:+ }$hosts_each"
		hosts_index=$((hosts_index + 1))
		mkfifo "$hosts_dir/wake.$hosts_each" || finish
		SC_TOPOLOGY=${1:-$SC_TOPOLOGY}
		[ $# -eq 0 ] || shift
		echo "$hosts_each $SC_TOPOLOGY" >>"$hosts_dir/topologies"
		[ "$(topology devices "$SC_TOPOLOGY" | grep -c '^[^ ]* cx ')" -le 1 ] ||
			{ fail "a host has one ConnectX at most"; finish; }
		[ -z "$(hosts_cx)" ] || hosts_lan=1
	done
	[ -z "$hosts_lan" ] || [ "$hosts_count" -eq 2 ] ||
		{ fail "hosts of which some have a ConnectX are two"; finish; }
	wire_start
	# All snapshots first: a host that runs waits for the others
	[ "${PEERLANE_SNAPSHOT-1}" = 0 ] || VM_ONLY_SNAPSHOT=1 hosts_each_start
	hosts_each_start
	VM_HOST=
	vm_images=$hosts_of_a
	VM_CMDLINE=$hosts_cmdline
	SC_TOPOLOGY=$hosts_own
}

# hosts_cx: the ConnectX of the machine, if it has one
hosts_cx() {
	topology devices "$SC_TOPOLOGY" | awk '$2 == "cx" { print $1 }'
}

hosts_each_start() {
	hosts_index=0
	# Several guests share your processors: one that gets none of their time for 20 s
	# is not locked up
	VM_CMDLINE="watchdog_thresh=60 rcupdate.rcu_cpu_stall_timeout=120 $hosts_cmdline"
	while read -r hosts_each SC_TOPOLOGY <&3; do
		hosts_index=$((hosts_index + 1))
		vm_images=
		[ "$hosts_each" != a ] || vm_images=$hosts_of_a
		for hosts_image in $hosts_images; do
			case $hosts_image in
			"$hosts_each="*) vm_images="$vm_images ${hosts_image#*=}" ;;
			esac
		done
		hosts_card=virtio-net-pci,host_mtu=9000,disable-legacy=on,iommu_platform=on,romfile=
		for hosts_each_nic in $hosts_nics; do
			case $hosts_each_nic in
			"$hosts_each="*) hosts_card=${hosts_each_nic#*=} ;;
			esac
		done
		hosts_name=$(hosts_cx)
		if [ -n "$hosts_name" ]; then
			set -- netdev=net0 trains=on "lid=$hosts_index" "mac=52:54:00:00:00:0$hosts_index" \
				"guid=0x0200c9fffe00000$hosts_index"
			for hosts_key; do
				shift
				set -- "$@" -set "device.$hosts_name.$hosts_key"
			done
		else
			hosts_name=nic0
			set -- -device "$hosts_card,id=nic0,netdev=net0,mac=52:54:00:00:00:0$hosts_index"
		fi
		echo "$hosts_name" >"$hosts_dir/card.$hosts_each"
		# By a ConnectX programs find no TCP: as in a cluster, there is a network for that
		if [ -n "$hosts_lan" ]; then
			hosts_other=b
			[ "$hosts_each" = a ] || hosts_other=a
			set -- "$@" -netdev "dgram,id=net1,local.type=unix,local.path=wire/lan.$hosts_each,remote.type=unix,remote.path=wire/lan.$hosts_other" \
				-device "virtio-net-pci,host_mtu=9000,disable-legacy=on,iommu_platform=on,romfile=,id=nic1,netdev=net1,mac=52:54:00:00:01:0$hosts_index"
		fi
		VM_HOST="HOST=$hosts_each
HOST_INDEX=$((hosts_index - 1))
HOSTS=$hosts_count
HOSTS_LAN=$hosts_lan"
		vm_start "$hosts_each" "$SC_TOPOLOGY" "$SC_KERNEL" "$OUT/case" \
			-netdev "dgram,id=net0,local.type=unix,local.path=wire/$hosts_each.host,remote.type=unix,remote.path=wire/$hosts_each" \
			"$@" 3<&- || { fail "host $hosts_each starts"; wire_stop; finish; }
	done 3<"$hosts_dir/topologies"
}

# hosts_wait SECONDS: until all have ended, at most so long
hosts_wait() {
	hosts_until=$(($(hosts_clock) + $1))
	hosts_bad=
	for hosts_each in $SC_HOSTS; do
		hosts_left=$((hosts_until - $(hosts_clock)))
		# when one took all the time, the others have learnt it by now
		[ "$hosts_left" -ge 5 ] || hosts_left=5
		vm_wait "$hosts_each" "$hosts_left"
		hosts_status=$?
		ktap_from "$OUT/$hosts_each/result.log" "$hosts_each"
		sc_ended "$hosts_each" "$hosts_status" "host $hosts_each" ||
			hosts_bad=1
	done
	wire_stop || hosts_bad=1
	[ -z "$hosts_bad" ] || finish
}

hosts_boot() {
	hosts_seconds=$1
	shift
	# who waits for another learns that it is in vain before all are ended
	HOSTS_PATIENCE=$((hosts_seconds * 3 / 4))
	hosts_start "$@"
	hosts_wait "$hosts_seconds"
}

hosts_clock() {
	read -r hosts_up hosts_idle </proc/uptime
	: "$hosts_idle"
	echo "${hosts_up%%.*}"
}

# --- the wire --------------------------------------------------------------

# Sockets have names of at most 107 bytes, so these are relative to $OUT, where
# QEMU runs too.
wire_start() {
	rm -rf "$OUT/wire"
	mkdir -p "$OUT/wire"
	mkfifo "$OUT/wire/ready" || finish
	cd "$OUT" || finish
	(
		trap '' INT
		watch_here wire/keeper.pid || exit
		# shellcheck disable=SC2086 # a list
		"$WIRE" --seed "${WIRE_SEED:-1}" ${WIRE_PCAP:+--pcap} wire $SC_HOSTS \
			</dev/null >wire/ready 2>wire/wire.log &
		hosts_pid=$!
		echo "$hosts_pid" >wire/pid
		wait "$hosts_pid"
		echo $? >wire/rc
		[ ! -e wire/stopping ] || exit
		# nobody gets on without it
		hosts_gone wire
		for hosts_each in $SC_HOSTS; do
			[ ! -e "$hosts_each/qemu.pid" ] || [ -e "$hosts_each/qemu.rc" ] ||
				kill -TERM "$(cat "$hosts_each/qemu.pid")"
		done
	) &
	echo $! >"$OUT/wire/keeper.pid"
	wire_said=$(timeout --foreground 10 head -n 1 "$OUT/wire/ready")
	rm -f "$OUT/wire/ready"
	[ "$wire_said" = ready ] ||
		{ fail "the wire starts" "$(cat "$OUT/wire/wire.log")"; finish; }
}

# wire_ask COMMAND…: its answer, as JSON
wire_ask() {
	(cd "$OUT" && exec "$WIRE" --ask wire "$@")
}

# wire HOST COMMAND…, wire seed N: prints ok, or what is wrong and fails.  When a
# link goes down or up, the guest's carrier does too.
wire() {
	wire_said=$(wire_ask "$@" 2>&1) || {
		wire_text=$(printf '%s\n' "$wire_said" | jq -r .error 2>/dev/null) ||
			wire_text=$wire_said
		echo "error: wire: $wire_text"
		return 1
	}
	if [ "${2-}" = link ]; then
		wire_up=true
		[ "$3" = up ] || wire_up=false
		for wire_each in $SC_HOSTS; do
			[ "$1" = "$wire_each" ] || [ "$1" = all ] || continue
			vm_command "$wire_each" set_link --arg name "$(cat "$hosts_dir/card.$wire_each")" --argjson up $wire_up >/dev/null ||
				{ echo "error: wire: $wire_each's NIC does not take $3"; return 1; }
		done
	fi
	case $wire_said in
	'{"ok":true}') echo ok ;;
	*) printf '%s\n' "$wire_said" ;;
	esac
}

# wire_stop: fails when it had ended by itself
wire_stop() {
	: >"$OUT/wire/stopping"
	if wire_ask counters >"$OUT/wire/counters.json" 2>"$OUT/wire/ask.log"; then
		kill -TERM "$(cat "$OUT/wire/pid")"
		wire_gone
	fi
	hosts_rc=$(cat "$OUT/wire/rc" 2>/dev/null)
	[ "$hosts_rc" != 0 ] || return 0
	fail "the wire was there to the end" "status ${hosts_rc:-none}
$(cat "$OUT/wire/wire.log" "$OUT/wire/ask.log")"
	return 1
}

# wire_kill: end it, whatever it does; so that its sockets go with it, it may do that
# itself first.  QEMU leaves those of the hosts.  Who waits for another host need not.
wire_kill() {
	[ ! -d "$OUT/wire" ] || : >"$OUT/wire/stopping"
	hosts_gone wire
	if [ -e "$OUT/wire/keeper.pid" ] && [ ! -e "$OUT/wire/rc" ]; then
		[ ! -e "$OUT/wire/pid" ] || kill -TERM "$(cat "$OUT/wire/pid")" 2>/dev/null
		wire_gone
		for wire_each in pid keeper.pid; do
			[ ! -e "$OUT/wire/$wire_each" ] || [ -e "$OUT/wire/rc" ] ||
				kill -KILL "$(cat "$OUT/wire/$wire_each")" 2>/dev/null
		done
	fi
	find "$OUT/wire" "$hosts_dir" \( -type s -o -type p \) -exec rm -f {} + 2>/dev/null
}

# wire_gone: its keeper has said so, within 10 s
wire_gone() {
	timeout --foreground 10 tail --pid="$(cat "$OUT/wire/keeper.pid")" -s 0.05 -f /dev/null
}

# hosts_spent: since the start: {seconds, cpu_seconds of the emulators,
# others_cpu_seconds of all else on this machine}
hosts_spent() {
	hosts_ticks=0
	for hosts_each in $SC_HOSTS; do
		hosts_ticks=$((hosts_ticks + $(sed "s/.*) //" \
			"/proc/$(cat "$OUT/$hosts_each/qemu.pid")/stat" |
			awk "{ print \$12 + \$13 }")))
	done
	echo "$hosts_began $(hosts_busy) $hosts_ticks $(getconf CLK_TCK)" | jq -Rc '
		split(" ") | map(tonumber) as [$from, $busy, $to, $busy_then, $ticks, $hz] |
		($ticks / $hz) as $cpu | {seconds: ($to - $from), cpu_seconds: $cpu,
			others_cpu_seconds: (($busy_then - $busy) / $hz - $cpu)}
		| map_values(. * 100 | round / 100)'
}

# the time, and how much of it all processors were busy (in ticks)
hosts_busy() {
	read -r hosts_up hosts_idle </proc/uptime
	echo "$hosts_up $(awk '$1 == "cpu" { print $2 + $3 + $4 + $7 + $8 + $9 }' /proc/stat)"
}

# --- what guests ask ------------------------------------------------------------

host_wire() { # HOST WORDS
	# shellcheck disable=SC2086 # words
	wire $2
}

# A waiting host reads from its fifo.  It says that it waits before it looks
# whether it must, and who changes something does that before looking who waits,
# so nobody sleeps through it.
hosts_wake() {
	for hosts_each in "$hosts_dir"/waiting.*; do
		[ ! -e "$hosts_each" ] || echo 1<>"$hosts_dir/wake.${hosts_each##*.}"
	done
}

# vm_ended NAME: vm.sh says that a guest has ended
vm_ended() {
	hosts_gone "$1"
}

hosts_gone() { # HOST or "wire"
	[ -d "$hosts_dir" ] || return 0
	: >"$hosts_dir/gone.$1"
	hosts_wake
}

# hosts_sleep HOST WHAT CONDITION…: until CONDITION succeeds; it prints the
# answer.  A status of 2: it never will
hosts_sleep() {
	hosts_me=$1
	hosts_what=$2
	shift 2
	hosts_until=$(($(hosts_clock) + HOSTS_PATIENCE))
	exec 8<>"$hosts_dir/wake.$hosts_me"
	: >"$hosts_dir/waiting.$hosts_me"
	while :; do
		"$@"
		[ $? -eq 1 ] || break
		if [ -e "$hosts_dir/gone.wire" ]; then
			echo "error: $hosts_what: the wire has ended"
			break
		fi
		hosts_left=$((hosts_until - $(hosts_clock)))
		if [ "$hosts_left" -le 0 ]; then
			echo "error: $hosts_what: not within $HOSTS_PATIENCE s"
			break
		fi
		timeout --foreground "$hosts_left" head -c 1 <&8 >/dev/null
	done
	rm -f "$hosts_dir/waiting.$hosts_me"
	exec 8<&-
}

hosts_word() { # WORD: can be part of a file's name
	case $1 in
	'' | *[!a-zA-Z0-9_.-]* | .*) return 1 ;;
	esac
}

# a barrier of one name can be used again: each host counts how often it came
host_barrier() { # HOST NAME
	hosts_word "$2" || { echo "error: barrier: not a name: \"$2\""; return; }
	hosts_times=$(cat "$hosts_dir/barrier/$2.times.$1" 2>/dev/null)
	hosts_times=$((${hosts_times:-0} + 1))
	echo "$hosts_times" >"$hosts_dir/barrier/$2.times.$1"
	: >"$hosts_dir/barrier/$2.$hosts_times.$1"
	hosts_wake
	hosts_sleep "$1" "barrier $2" hosts_met "$2" "$hosts_times"
}

hosts_met() { # NAME TIMES
	hosts_missing=
	for hosts_each in $SC_HOSTS; do
		[ ! -e "$hosts_dir/barrier/$1.$2.$hosts_each" ] || continue
		hosts_missing="$hosts_missing $hosts_each"
		# in this order: a host may come and then end
		[ -e "$hosts_dir/gone.$hosts_each" ] || continue
		[ ! -e "$hosts_dir/barrier/$1.$2.$hosts_each" ] || continue
		echo "error: barrier $1: host $hosts_each has ended before it came there"
		return 2
	done
	[ -z "$hosts_missing" ] || return 1
	echo ok
}

host_publish() { # HOST "KEY VALUE"
	hosts_key=${2%% *}
	hosts_word "$hosts_key" || { echo "error: publish: not a key: \"$hosts_key\""; return; }
	case $2 in
	*' '*) ;;
	*) echo "error: publish $hosts_key: and the value?"; return ;;
	esac
	printf '%s\n' "${2#* }" >"$hosts_dir/new.$1" &&
		mv "$hosts_dir/new.$1" "$hosts_dir/key/$hosts_key"
	hosts_wake
	echo ok
}

host_await() { # HOST KEY
	hosts_word "$2" || { echo "error: await: not a key: \"$2\""; return; }
	hosts_sleep "$1" "await $2" hosts_known "$1" "$2"
}

hosts_known() { # HOST KEY
	hosts_alive=
	for hosts_each in $SC_HOSTS; do
		[ "$hosts_each" = "$1" ] || [ -e "$hosts_dir/gone.$hosts_each" ] ||
			hosts_alive=1
	done
	if [ -e "$hosts_dir/key/$2" ]; then
		cat "$hosts_dir/key/$2"
	elif [ -z "$hosts_alive" ]; then
		echo "error: await $2: all other hosts have ended, and none has published it"
		return 2
	else
		return 1
	fi
}

# --- results -------------------------------------------------------------------

# hosts_look HOST MARK: what the wire has counted, next to the devices' counters
hosts_look() {
	[ "$2" != total.begin ] || { echo "error: the label \"total\" is the whole run's"; return 1; }
	wire_ask counters >"$OUT/$1/$2.wire" 2>&1 ||
		{ echo "error: wire: $(cat "$OUT/$1/$2.wire")"; return 1; }
}

# hosts_measure: the result of all hosts and the wire, in $OUT/measured.json
hosts_measure() {
	hosts_blocks=$SC_BLOCKS
	hosts_own=$SC_TOPOLOGY
	: >"$OUT/hosts.jsonl"
	while read -r hosts_each SC_TOPOLOGY <&3; do
		SC_DEVICES=$(sc_devices_json)
		jq -nc --argjson d "$SC_DEVICES" '{devices: $d}' \
			>"$OUT/$hosts_each/extra.jsonl"
		sc_measure_guest "$hosts_each" "$OUT/$hosts_each/extra.jsonl" \
			"$OUT/$hosts_each/measured.json" "$hosts_each: "
		jq -c --arg host "$hosts_each" --arg topology "$SC_TOPOLOGY" \
			'{($host): ({topology: $topology} + .)}' \
			"$OUT/$hosts_each/measured.json" >>"$OUT/hosts.jsonl"
		rm -f "$OUT/$hosts_each/measured.json" "$OUT/$hosts_each/extra.jsonl"
		SC_BLOCKS= # those of the scenario's drive, which host a has
	done 3<"$hosts_dir/topologies"
	SC_BLOCKS=$hosts_blocks
	SC_TOPOLOGY=$hosts_own
	SC_DEVICES='[]'
	: >"$OUT/looks.jsonl"
	for hosts_each in $SC_HOSTS; do
		for hosts_file in "$OUT/$hosts_each"/*.begin.wire; do
			hosts_label=${hosts_file##*/}
			hosts_label=${hosts_label%.begin.wire}
			[ ! -e "$OUT/$hosts_each/$hosts_label.end.wire" ] ||
				jq -nc --arg label "$hosts_label" --slurpfile a "$hosts_file" \
					--slurpfile b "$OUT/$hosts_each/$hosts_label.end.wire" \
					'{label: $label, begin: $a[0], end: $b[0]}' >>"$OUT/looks.jsonl"
		done
	done
	jq -L "$VM_ACCOUNTING" -nc --slurpfile hosts "$OUT/hosts.jsonl" \
		--slurpfile looks "$OUT/looks.jsonl" \
		--slurpfile total "$OUT/wire/counters.json" \
		--slurpfile extra "$OUT/extra.jsonl" \
		'include "hosts"; hosts_result($hosts; $looks; $total[0]; $extra)' \
		>"$OUT/measured.json" || fail "the hosts' results can be put together"
	rm -f "$OUT/hosts.jsonl" "$OUT/looks.jsonl"
}
