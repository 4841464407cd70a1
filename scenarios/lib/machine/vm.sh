# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# The launcher of guests.  Source it with TOP and OUT set:
#
#	vm_image disk0 FILE [BLKDEBUG-RULES [LOG]]	a drive's image; what is written goes to
#				the file LOG, too (power-cut.c); drives whose image
#				nobody gives get a blank one
#	vm_allow REGEX REASON		this line may stand on the console
#	vm_start NAME TOPOLOGY KVER CASE_DIR [QEMU-ARGS…]	boot, in the background
#	vm_wait NAME SECONDS		the guest's status
#	vm_run NAME TOPOLOGY KVER CASE_DIR SECONDS [QEMU-ARGS…]	both
#	vm_qmp NAME JSON…		the reply to the last
#	vm_qmp_file NAME FILE		a command to a line; the replies to all
#	vm_command NAME COMMAND [--arg|--argjson KEY VALUE]…	the same, of one with arguments
#	vm_qom_get NAME PATH PROPERTY	the value, as JSON
#	vm_stop NAME			end it now
#
# vm_wait returns what /case/run returned, or: 99 the console shows a
# complaint of the kernel, 124 the time is over, 125 the guest ended without a
# status.  Artefacts of guest NAME are in $OUT/NAME/: console.log, result.log,
# qemu.args, qemu.log (standard error), trace.log, trace.marks, and
# machine: the devices of the topology, which the guest has as /case/machine.
#
# CASE_DIR/extras lists what the guest needs beyond the base, by the names of
# images/guest/extras: "rdma" for soft-RoCE, "fio".
#
# A guest starts from a snapshot of its machine, taken when its init waited for a
# case (snapshot.sh): in half a second instead of five.  Snapshots are kept in the
# cache, by a key of the emulator, the guest's kernel and initramfs, the machine
# and the kernel's command line.  The case and what is built here come in the memory of
# a PCI device, which init takes away again.
#
# Environment: VM_CMDLINE adds to the kernel's command line; VM_HOST is
# what the guest finds in /case/host, if it is one of several; VM_TRACE lists
# QEMU trace events; VM_RAM_FILE=1 makes the guest's memory the file
# $OUT/NAME/ram, which others can map while it runs; QEMU is another emulator;
# PEERLANE_ACCEL is tcg (default) or kvm (which nobody has tested);
# PEERLANE_SNAPSHOT=0 boots each guest; with VM_ONLY_SNAPSHOT=1 vm_start only makes
# the snapshot; VM_SNAPSHOTS_MIB is what all snapshots may take (32768).
#
# no_timer_check: on a busy host an emulated timer can tick too late for the
# kernel's boot check of it, which then panics.
# lpj: for the same reason measuring the delay loop of the second processor
# can take a minute; delays need no precision before emulated devices.
# tsc=nowatchdog: Linux 7.2 compares the processors' TSCs early in the boot, with
# interrupts off and by a clock that may stand still meanwhile; where the other
# processor waits in stop_machine() at that moment, both wait forever.
# mitigations=off: retpolines and filled return stacks protect nobody here, and cost
# emulated processors a fifteenth of their time.
# damon_stat.enabled=0, psi=0: DAMON samples the memory each 5 ms, and the accounting of
# stalls runs on each switch of tasks; no case uses them.

: "${TOP:?}" "${OUT:?}"
BUILD=${BUILD:-$TOP/build}
VM_LIB=$TOP/scenarios/lib/machine
VM_ACCOUNTING=$TOP/scenarios/lib/accounting
QEMU=${QEMU:-$BUILD/qemu/qemu-system-x86_64}
VM_TRACE=${VM_TRACE-}
# the events that say where the data of NVMe commands went, for those who account for it
# shellcheck disable=SC2034 # they use it
VM_TRACE_NVME="pci_nvme_admin_cmd pci_nvme_io_cmd pci_nvme_read pci_nvme_write pci_nvme_map_addr"
VM_CMDLINE=${VM_CMDLINE-}
VM_HOST=${VM_HOST-}
VM_RAM_FILE=${VM_RAM_FILE-}
vm_images=
vm_names=
vm_guard_pid=

# shellcheck source=scenarios/lib/machine/scan.sh
. "$TOP/scenarios/lib/machine/scan.sh"
# shellcheck source=scenarios/lib/machine/watch.sh
. "$TOP/scenarios/lib/machine/watch.sh"
# shellcheck source=scenarios/lib/machine/topology.sh
. "$TOP/scenarios/lib/machine/topology.sh"

vm_say() {
	printf '%s\n' "$*" | sed 's/^/# vm: /' >&2
}

# vm_lacks FILE: a file of the build is not there
vm_lacks() {
	if [ -e "$TOP/BUNDLE" ]; then
		vm_say "the bundle has no ${1#"$TOP"/} (Contents, in its README.md); a checkout has it"
	else
		vm_say "no $1: this part is not built (run: make)"
	fi
}

# who worked here before and was killed may have a guard that still cleans up
[ ! -e "$OUT/.guard" ] || flock -w 30 "$OUT/.guard" true ||
	{ vm_say "the clean-up of an earlier run in $OUT has held $OUT/.guard for 30 s: wait for its end, or work in another folder"; exit 2; }

vm_image() {
	[ -e "$2" ] || { vm_say "no image $2: the drive's file ($1) must exist before the guest starts (truncate -s 64M $2)"; return 2; }
	vm_images="$vm_images $1=$2${3:+:blkdebug=$3}${4:+:writes=$4}"
}

vm_allow() {
	[ -n "${2-}" ] || { vm_say "vm_allow $1: no reason is given, and no line is allowed without one: add it as the second argument"; return 2; }
	printf '%s\t%s\n' "$1" "$2" >>"$OUT/console.allow"
}

# vm_accel: KVM only for those who ask for it
vm_accel() {
	case ${PEERLANE_ACCEL-} in
	kvm*) echo "$PEERLANE_ACCEL" ;;
	*) echo tcg,thread=multi ;;
	esac
}

# vm_topology MODE: what topology.awk makes of the machine of vm_start
vm_topology() {
	topology "$1" "$vm_topo" "$vm_images$vm_blanks" "" "$vm_ram"
}

# vm_blank: every drive has an image, and every image a drive
vm_blank() {
	vm_wanted=" $(vm_topology images | tr '\n' ' ')"
	for vm_each in $vm_images; do
		case $vm_wanted in
		*" ${vm_each%%=*} "*) ;;
		*)
			vm_say "no drive of ${vm_topo##*/} takes the image ${vm_each%%=*} (its drives take:${vm_wanted% }): name one of these, or give a drive of the topology image=${vm_each%%=*}"
			return 2
			;;
		esac
	done
	for vm_each in $vm_wanted; do
		case $vm_images in
		*" $vm_each="*) continue ;;
		esac
		truncate -s 64M "$vm_dir/$vm_each.img" || return 2
		vm_blanks="$vm_blanks $vm_each=$vm_dir/$vm_each.img"
	done
}

# vm_args [QEMU-ARGS…]: QEMU's arguments for the machine of vm_start, one to a line;
# @DIR@ is the folder of the run, @GUEST@ that of the kernel, @FIRMWARE@ that of the
# firmware, @RAM@ that of the memory
vm_args() {
	[ -z "$VM_RAM_FILE" ] && [ "${PEERLANE_SNAPSHOT-1}" = 0 ] || vm_ram=@RAM@
	vm_topology args || return
	case $vm_kver in
	# With five levels of page tables KASAN reports an interrupt that comes while
	# identify_cpu() has cleared the features of the processor, which say how many levels
	# there are.  Without checks of its own the allocator keeps arrays of free objects,
	# whose stale entries hide leaks from kmemleak: 110 of 256.
	*-debug | *-kcsan) vm_checks=" no5lvl slub_debug=F" ;;
	*) vm_checks= ;;
	esac
	# hpet: on a busy host the guest misjudges its TSC, and its clock runs fast
	for vm_arg in -accel "$(vm_accel)" -nodefaults -no-user-config -no-reboot -nographic \
		-display none -L @FIRMWARE@ \
		-kernel @GUEST@/vmlinux -initrd @DIR@/initrd \
		-append "console=ttyS0 panic=-1 oops=panic no_timer_check lpj=10000000 tsc=nowatchdog clocksource=hpet mitigations=off damon_stat.enabled=0 psi=0 rdinit=/init$vm_checks${vm_params:+ $vm_params}${VM_CMDLINE:+ $VM_CMDLINE}" \
		-device isa-debug-exit,iobase=0xf4,iosize=0x04 \
		-chardev "file,id=console,path=@DIR@/console.log,append=on" \
		-serial chardev:console \
		-chardev "pipe,id=result,path=@DIR@/result" \
		-serial chardev:result \
		-chardev "pipe,id=qmp,path=@DIR@/qmp" \
		-mon chardev=qmp,mode=control,pretty=off \
		-object memory-backend-file,id=case,size=1G,mem-path=@DIR@/case.img,share=@CASE@ \
		-device ivshmem-plain,memdev=case,master=on,bus=pcie.0,addr=1e \
		"$@"; do
		printf '%s\n' "$vm_arg"
	done
}

# vm_fill: the arguments of this run
vm_fill() {
	vm_shared=on
	vm_memory=$vm_dir
	if [ "$vm_way" = snapshot ] && [ -z "$VM_RAM_FILE" ]; then
		vm_shared=off
		vm_memory=$vm_store
	fi
	[ -s "$vm_dir/args" ] || return
	vm_place | sed "s|@DIR@|$(vm_quote "$vm_dir")|g; s|@RAM@|$(vm_quote "$vm_memory")|g; s|@SHARED@|$vm_shared|g; s|@CASE@|off|g" |
		if [ "$vm_way" = snapshot ]; then
			# they are in memory
			awk '/^-(kernel|initrd|append)$/ { getline; next } { print }'
		else
			cat
		fi
	printf '%s\n' -D "$vm_dir/trace.log"
	for vm_arg in $VM_TRACE; do
		printf '%s\n' -trace "$vm_arg"
	done
	[ "$vm_way" = boot ] || printf '%s\n' -incoming defer
}

# vm_place: the arguments, with the places of what is built
vm_place() {
	sed "s|@GUEST@|$(vm_quote "$vm_guest")|g; s|@FIRMWARE@|$(vm_quote "$BUILD/qemu/firmware")|g" "$vm_dir/args"
}

# vm_quote TEXT: for the right side of sed's s|||
vm_quote() {
	printf '%s\n' "$1" | sed 's/[&|\\]/\\&/g'
}

# vm_key: the key of the machine's snapshot: all that its state depends on
vm_key() {
	case $QEMU in
	"$BUILD/qemu/qemu-system-x86_64") cat "$BUILD/qemu/key" || return ;;
	*) sha256sum <"$QEMU" || return ;;
	esac
	cat "$VM_LIB/snapshot.sh" "$vm_guest/key" || return
	for vm_each in $vm_extras; do
		sha256sum <"$vm_guest/$vm_each.cpio" || return
	done
	case $(vm_accel) in
	kvm*) grep -m 3 -E '^(vendor_id|model name|flags)' /proc/cpuinfo ;;
	esac
	# where images, pipes and networks are is no part of the machine
	awk '/^-(blockdev|chardev)$/ { getline; next }
	/^-netdev$/ { getline; sub(/,.*/, "") }
	{ print }' "$vm_dir/args"
}

# vm_snapshot: the machine's snapshot is in $vm_store, and what the run needs of it
# in $vm_dir.  Until vm_start has loaded it, the lock (descriptor 6) keeps it there.
vm_snapshot() {
	vm_key >"$vm_dir/key" || { vm_say "no snapshot of this machine can be looked for: a file of the build cannot be read (above; run: make)"; return 2; }
	vm_store=${PEERLANE_CACHE:?}/vm/$(sha256sum <"$vm_dir/key" | cut -c 1-16)
	mkdir -p "${vm_store%/*}" || return
	vm_tries=0
	while :; do
		exec 6>>"$vm_store.lock" || return
		flock -s -w 900 6 || { vm_say "the snapshot $vm_store is not there: another run has held $vm_store.lock for 900 s to make it; end that run, or boot without a snapshot: PEERLANE_SNAPSHOT=0"; return 2; }
		[ ! -d "$vm_store" ] || break
		exec 6>&-
		vm_tries=$((vm_tries + 1))
		[ "$vm_tries" -le 3 ] || { vm_say "the snapshot $vm_store was made and removed again three times: others need its room; free room there, raise VM_SNAPSHOTS_MIB (${VM_SNAPSHOTS_MIB:-32768}), or boot without a snapshot: PEERLANE_SNAPSHOT=0"; return 2; }
		vm_place >"$vm_dir/snapshot.args"
		[ -e "$OUT/console.allow" ] || : >"$OUT/console.allow"
		# It ends with this shell
		read -r vm_self vm_rest </proc/self/stat
		: "$vm_rest"
		set --
		for vm_each in base $vm_extras; do
			set -- "$@" "$vm_guest/$vm_each.cpio"
		done
		# shellcheck disable=SC2016 # for the inner shell
		setpriv --pdeathsig KILL sh -c '[ "$PPID" = "$0" ] && exec sh "$@"' "$vm_self" \
			"$VM_LIB/snapshot.sh" "$vm_store" "$QEMU" "$vm_dir/snapshot.args" \
			"$OUT/console.allow" "$@" || {
			vm_say "no snapshot of this machine could be made, for the reason above; PEERLANE_SNAPSHOT=0 boots instead"
			return 2
		}
		# which took time that the next run does not take
		: >"$OUT/.snapshots-made"
	done
	touch -c "$vm_store"
	# What its kernel printed is part of what this guest's kernel has printed
	cp "$vm_store/console.log" "$vm_dir/console.log" || return
	[ -z "$VM_RAM_FILE" ] ||
		for vm_each in "$vm_store"/ram "$vm_store"/node*-memory; do
			[ ! -e "$vm_each" ] || cp --sparse=always "$vm_each" "$vm_dir/" || return
		done
}

# vm_loaded: until the snapshot is loaded, within 60 s.  A guest with little to do may
# have come to its end before it is asked; vm_wait has its status then.
vm_loaded() {
	vm_tries=0
	while [ "$vm_tries" -lt 1200 ]; do
		vm_reply=$(vm_qmp "$vm_name" '{"execute":"query-migrate"}') || {
			[ -e "$vm_dir/qemu.rc" ]
			return
		}
		case $vm_reply in
		*'"status": "completed"'*) return ;;
		*'"status": "failed"'*) break ;;
		esac
		vm_tries=$((vm_tries + 1))
		sleep 0.05
	done
	echo "the snapshot $vm_store cannot be loaded: $vm_reply; remove that folder, and the next run makes it anew" >>"$vm_dir/qemu.log"
	return 1
}

# vm_carry: the memory that brings the guest our build and the case; take-case.c has the
# format.  When it boots, the initramfs, too.
vm_carry() {
	if [ "$vm_way" = boot ]; then
		for vm_each in base $vm_extras; do
			cat "$vm_guest/$vm_each.cpio" || return
		done >"$vm_dir/initrd"
	fi
	# One archive: our build up to its trailer, then the case
	vm_size=0
	if [ -r "$vm_guest/overlay.cpio" ]; then
		vm_size=$(LC_ALL=C grep -obUaF 'TRAILER!!!' "$vm_guest/overlay.cpio" | tail -n 1)
		[ -n "$vm_size" ] || { vm_say "$vm_guest/overlay.cpio is no archive: it has no end, as if its build was interrupted (run: make)"; return 2; }
		vm_size=$((${vm_size%%:*} - 110))
	fi
	vm_bytes=$((vm_size + $(wc -c <"$vm_dir/case.cpio")))
	{
		printf '%-511s\n' "case $(date +%s) $(mcookie)$(mcookie) $vm_bytes"
		[ "$vm_size" -eq 0 ] || head -c "$vm_size" "$vm_guest/overlay.cpio"
		cat "$vm_dir/case.cpio"
	} >"$vm_dir/case.img" || return
	[ "$(wc -c <"$vm_dir/case.img")" -le 1073741824 ] ||
		{ vm_say "the case takes more than the 1 GiB of the device that brings it ($vm_case: $(du -shL "$vm_case" | cut -f 1)): put large files on a drive (vm_image)"; return 2; }
	truncate -s 1G "$vm_dir/case.img"
}

# vm_tests: of the programs and modules that are there for tests, those that a file of the
# case names: all of them are as much as everything else that the guest gets of our build
vm_tests() {
	[ -r "$vm_guest/tests.cpio" ] || return 0
	cpio -t --quiet <"$vm_guest/tests.cpio" | sed -n 's,^.*/\(tests\|extra\)/,,p' | sed 's/[.]ko$//' >"$vm_dir/there"
	grep -rIhowF -f "$vm_dir/there" "$vm_dir/stage/case" | sort -u | sed 's,.*,usr/*/&\nusr/*/&.ko,' >"$vm_dir/named"
	rm "$vm_dir/there"
	[ ! -s "$vm_dir/named" ] ||
		(cd "$vm_dir/stage" && cpio -id --quiet -E ../named) <"$vm_guest/tests.cpio"
}

# vm_start NAME TOPOLOGY KVER CASE_DIR [QEMU-ARGS…]
vm_start() {
	vm_name=$1
	vm_topo=$2
	vm_kver=$3
	vm_case=$4
	shift 4
	vm_dir=$OUT/$vm_name
	vm_guest=${VM_GUEST:-$BUILD/guest/$vm_kver}
	vm_blanks=
	vm_ram=

	topology_known "$vm_topo" || { vm_say "no topology $vm_topo: it is neither a name nor a file; ${CALLED-scenarios/}draw -l lists the names"; return 2; }
	[ -x "$QEMU" ] || { vm_lacks "$QEMU"; return 2; }
	[ -x "$vm_case/run" ] || { vm_say "no program $vm_case/run, which the guest would run: make an executable file of that name"; return 2; }
	for vm_file in vmlinux base.cpio; do
		[ -r "$vm_guest/$vm_file" ] && continue
		vm_lacks "$vm_guest/$vm_file"
		return 2
	done

	vm_extras=
	vm_wanted=
	[ ! -e "$vm_case/extras" ] || vm_wanted=$(sed 's/#.*//' "$vm_case/extras")
	for vm_each in $vm_wanted; do
		[ -r "$vm_guest/$vm_each.cpio" ] ||
			{ vm_lacks "$vm_guest/$vm_each.cpio"; return 2; }
		vm_extras="$vm_extras $vm_each"
	done

	rm -rf "$vm_dir"
	mkdir -p "$vm_dir/stage/case" || return 2
	vm_topology devices >"$vm_dir/machine" || return 2
	vm_blank || return 2
	vm_params=$(vm_topology cmdline)
	cp -RL "$vm_case/." "$vm_dir/stage/case/" || return 2
	cp "$vm_dir/machine" "$vm_dir/stage/case/" || return 2
	[ -z "$VM_HOST" ] ||
		printf '%s\n' "$VM_HOST" >"$vm_dir/stage/case/host"
	vm_tests || return 2
	(cd "$vm_dir/stage" && find -- * | LC_ALL=C sort |
		cpio -o -H newc -R 0:0 --quiet) >"$vm_dir/case.cpio" || return 2
	rm -rf "$vm_dir/stage" "$vm_dir/named"
	mkfifo "$vm_dir/qmp.in" "$vm_dir/qmp.out" "$vm_dir/result.in" \
		"$vm_dir/result.out" "$vm_dir/exit" || return 2
	vm_guard
	: >"$vm_dir/result.log"
	: >"$vm_dir/trace.log"
	: >"$vm_dir/trace.marks"
	: >"$vm_dir/qmp.lock"

	vm_args "$@" >"$vm_dir/args" || return 2
	vm_way=boot
	if [ "${PEERLANE_SNAPSHOT-1}" != 0 ]; then
		vm_way=snapshot
		vm_snapshot || return 2
		if [ -n "${VM_ONLY_SNAPSHOT-}" ]; then
			exec 6>&-
			rm -rf "$vm_dir"
			return
		fi
	fi
	vm_carry || return 2
	vm_fill >"$vm_dir/qemu.args" || return 2

	set --
	while IFS= read -r vm_arg; do
		set -- "$@" "$vm_arg"
	done <"$vm_dir/qemu.args"
	date +%s%N >"$vm_dir/started"
	vm_names="$vm_names $vm_name"
	(
		trap '' INT
		watch_here "$vm_dir/keeper.pid" || exit
		# it ends with this shell, from its first moment on
		# shellcheck disable=SC2016 # for the inner shell
		setpriv --pdeathsig KILL sh -c '[ "$PPID" = "$0" ] && exec "$@"' "$watch_pid" \
			"$QEMU" "$@" 6>&- </dev/null >"$vm_dir/qemu.log" 2>&1 &
		vm_pid=$!
		trap 'kill -TERM "$vm_pid" 2>/dev/null' TERM HUP
		echo "$vm_pid" >"$vm_dir/qemu.pid"
		wait "$vm_pid"
		vm_rc=$?
		echo "$vm_rc" >"$vm_dir/qemu.rc"
		# for a QMP call that waits for its reply
		echo '{"event":"EXITED"}' 1<>"$vm_dir/qmp.out"
		trap - TERM HUP
		echo "$vm_rc" >"$vm_dir/exit"
	) 6>&- &
	echo $! >"$vm_dir/keeper.pid"
	vm_serve "$vm_name" 6>&- &
	echo $! >"$vm_dir/serve.pid"

	# QMP wants its greeting answered before anything else
	set -- '{"execute":"qmp_capabilities"}'
	[ "$vm_way" = boot ] || set -- "$@" \
		'{"execute":"migrate-set-capabilities","arguments":{"capabilities":[{"capability":"x-ignore-shared","state":true},{"capability":"mapped-ram","state":true}]}}' \
		"$(jq -nc --arg uri "file:$vm_store/state" '{execute: "migrate-incoming", arguments: {$uri, "exit-on-error": false}}')"
	{ vm_reply=$(vm_qmp "$vm_name" "$@") && { [ "$vm_way" = boot ] || vm_loaded; }; } ||
		{
			vm_say "guest $vm_name: QEMU did not start${vm_reply:+: $vm_reply}; see its arguments ($vm_dir/qemu.args) and its messages ($vm_dir/qemu.log):"
			vm_say "$(cat "$vm_dir/qemu.log")"
			exec 6>&-
			vm_stop "$vm_name"
			return 2
		}
	exec 6>&-
}

# vm_qmp NAME JSON…: one after the other, within 20 s; the last reply on one line.
# An error ends the row, is the reply and fails.
vm_qmp() {
	vm_qmp_dir=$OUT/$1
	shift
	vm_qmp_call "$vm_qmp_dir" "$@"
}
# vm_qmp_file NAME FILE: the same of a command to a line of FILE; all replies, a line each
vm_qmp_file() {
	vm_qmp_dir=$OUT/$1
	vm_qmp_from=$2
	set --
	while IFS= read -r vm_line; do
		set -- "$@" "$vm_line"
	done <"$vm_qmp_from"
	vm_qmp_call -e "$vm_qmp_dir" "$@"
}
vm_qmp_call() {
	(
		exec 5>"$vm_qmp_dir/qmp.lock"
		# as QEMU would refuse it: callers read the words of an error
		flock -w 20 5 || {
			jq -nc --arg desc "QMP is busy: another command has waited for QEMU's reply for 20 s; look at $vm_qmp_dir/qemu.log, or try again" '{error: {$desc}}'
			exit 1
		}
		exec timeout --foreground 20 sh "$VM_LIB/qmp-call.sh" "$@"
	)
}

# vm_command NAME COMMAND [--arg|--argjson KEY VALUE]…: the arguments are jq's, for a text or JSON
vm_command() {
	vm_of=$1
	vm_execute=$2
	shift 2
	vm_qmp "$vm_of" "$(jq -nc '{execute: $ARGS.positional[0], arguments: $ARGS.named}' "$@" --args "$vm_execute")"
}

# vm_qom_get NAME PATH PROPERTY
vm_qom_get() {
	vm_got=$(vm_command "$1" qom-get --arg path "$2" --arg property "$3") || {
		printf '%s\n' "$vm_got" | jq -r .error.desc
		return 1
	}
	printf '%s\n' "$vm_got" | jq -c .return
}

# vm_qom_set NAME PATH PROPERTY VALUE: numbers, true and false as they are
vm_qom_set() {
	vm_value=$4
	vm_kind=--argjson
	case $4 in
	true | false) ;;
	on) vm_value=true ;;
	off) vm_value=false ;;
	'' | *[!0-9]*) vm_kind=--arg ;;
	esac
	vm_command "$1" qom-set --arg path "$2" --arg property "$3" "$vm_kind" value "$vm_value"
}

# --- the host channel ------------------------------------------------------
#
# The guest prints "@host COMMAND ARGUMENTS" and reads one line.  A command
# that is not built in is a function of the scenario, host_COMMAND (with _ for
# -), which prints the reply; it runs in a process of its own.

vm_serve() {
	vm_dir=$OUT/$1
	watch_here "$vm_dir/serve.pid" || return
	vm_cr=$(printf '\r')
	vm_seen=
	while IFS= read -r vm_line || [ -n "$vm_line" ]; do
		vm_line=${vm_line%"$vm_cr"}
		[ -n "$vm_seen" ] || date +%s%N >"$vm_dir/first"
		vm_seen=1
		printf '%s\n' "$vm_line" >>"$vm_dir/result.log"
		case $vm_line in
		'@host '*)
			vm_answer=$(vm_host_command "$1" "${vm_line#@host }" 2>&1 |
				tr "\n" " " | sed "s, *$,,")
			printf '@reply %s\n' "$vm_answer" >>"$vm_dir/result.log"
			printf '%s\n' "$vm_answer" >"$vm_dir/result.in"
			;;
		esac
	done <"$vm_dir/result.out"
	# hosts.sh wants to know
	if command -v vm_ended >/dev/null; then
		vm_ended "$1"
	fi
}

vm_host_command() { # NAME LINE
	vm_host=$1
	vm_rest=$2
	vm_word=${vm_rest%% *}
	case $vm_rest in
	*' '*) vm_rest=${vm_rest#* } ;;
	*) vm_rest= ;;
	esac
	case $vm_word in
	qmp)
		vm_qmp "$vm_host" "$vm_rest" || echo "error: QEMU refused the command or did not reply within 20 s; look at qemu.log"
		;;
	set)
		# shellcheck disable=SC2086 # three words
		set -- $vm_rest
		[ $# -eq 3 ] || { echo "error: set needs three words, and got $#: set DEV PROPERTY VALUE"; return; }
		if vm_out=$(vm_qom_set "$vm_host" "/machine/peripheral/$1" "$2" "$3")
		then
			echo ok
		else
			echo "error $vm_out"
		fi
		;;
	counters | initiators)
		vm_out=$(vm_qom_get "$vm_host" "/machine/peripheral/$vm_rest" "$vm_word") ||
			vm_out="error $vm_out"
		echo "$vm_out"
		;;
	trace-mark)
		vm_mark "$vm_host" "$vm_rest"
		echo ok
		;;
	ping)
		echo "pong $vm_rest"
		;;
	*)
		vm_fn=host_$(printf '%s' "$vm_word" | tr '-' '_')
		case $vm_fn in
		*[!a-z0-9_]*) vm_fn= ;;
		esac
		if [ -n "$vm_fn" ] && command -v "$vm_fn" >/dev/null; then
			"$vm_fn" "$vm_host" "$vm_rest"
		else
			echo "error: no command $vm_word: it is neither qmp, set, counters, initiators, trace-mark or ping, nor a function ${vm_fn:-host_NAME} of the scenario"
		fi
		;;
	esac
}

# vm_mark NAME LABEL: remember how far the trace has come.  QEMU writes a trace
# line before the command completes, so all IO that the guest has seen the end
# of stands before the mark.
vm_mark() {
	printf '%s\t%s\n' "$2" "$(wc -c <"$OUT/$1/trace.log")" \
		>>"$OUT/$1/trace.marks"
}

# vm_trace NAME FROM TO: the lines between two marks (empty: start, end)
vm_trace() {
	vm_from=$(vm_mark_at "$1" "$2" 0)
	vm_to=$(vm_mark_at "$1" "$3" "$(wc -c <"$OUT/$1/trace.log")")
	tail -c +$((vm_from + 1)) "$OUT/$1/trace.log" |
		head -c $((vm_to - vm_from))
}

vm_mark_at() {
	[ -n "$2" ] || { echo "$3"; return; }
	awk -F '\t' -v label="$2" -v other="$3" '
	$1 == label { at = $2; seen = 1 }
	END { print seen ? at : other }' "$OUT/$1/trace.marks"
}

# --- where the bytes of NVMe commands went ---------------------------------

# vm_bar NAME DEVICE BAR: "ADDRESS SIZE" as the guest has placed it
vm_bar() {
	vm_qmp "$1" '{"execute":"query-pci"}' | jq -r --arg id "$2" \
		--argjson bar "$3" '
		[.. | objects | select(.qdev_id? == $id)][0].regions[]?
		| select(.bar == $bar) | "\(.address) \(.size)"'
}

# vm_bdf NAME DEVICE: its PCI address in the guest
vm_bdf() {
	vm_qmp "$1" '{"execute":"query-pci"}' | jq -r --arg id "$2" '
	[.. | objects | select(.qdev_id? == $id)][0] | .bus, .slot, .function' |
		xargs printf '0000:%02x:%02x.%x\n'
}

# nvme_route_bytes RANGES [BLOCKS]: reads a trace, prints where the bytes of NVMe
# commands went (nvme-routes.awk says what the arguments are):
# {NAME: {data: {read, write}, metadata: {read, write}}}
nvme_route_bytes() {
	awk -v ranges="$1" -v blocks="${2-}" -f "$VM_ACCOUNTING/nvme-routes.awk" |
		jq -Rnc '[inputs / " " | .[0] as $name | .[1:] | map(tonumber) |
			{($name): {data: {read: .[0], write: .[1]}, metadata: {read: .[2], write: .[3]}}}] | add'
}

# --- the end ---------------------------------------------------------------

# vm_wait NAME SECONDS: its status; sets vm_late when the time was over
vm_wait() {
	vm_dir=$OUT/$1
	[ -p "$vm_dir/exit" ] || { vm_say "no guest $1 runs: vm_start did not start it, or its end was waited for before; call vm_start first"; return 125; }
	vm_rc=$(timeout --foreground "$2" cat "$vm_dir/exit") || {
		# shellcheck disable=SC2034 # for who shows it
		vm_late=1
		vm_say "guest $1: no end within $2 seconds; its console ($vm_dir/console.log) shows whether it hangs or needs more time, and ends:"
		vm_say "$(tail -n 15 "$vm_dir/console.log" 2>/dev/null)"
		vm_stop "$1"
		vm_scan "$1"
		return 124
	}
	# what is still in the pipe
	timeout --foreground 10 tail --pid="$(cat "$vm_dir/serve.pid")" -s 0.05 \
		-f /dev/null
	vm_forget "$1"
	vm_scan "$1" || return 99
	# QEMU's own failures, and its end by a signal, may look the same, and of a status
	# above 127 it keeps the low bits: init prints its status
	vm_status=$(tr -d '\r' <"$vm_dir/console.log" | sed -n 's/^.*init: status \([0-9]*\)$/\1/p' | tail -n 1)
	if [ -n "$vm_status" ] && [ "$(((vm_status * 2 + 1) % 256))" -eq "$vm_rc" ]; then
		return "$vm_status"
	fi
	vm_say "guest $1 ended without a status: it powered off or panicked, or QEMU failed (its status: $vm_rc); see QEMU's messages and the end of the console ($vm_dir/console.log):"
	vm_say "$(cat "$vm_dir/qemu.log")"
	vm_say "$(tail -n 15 "$vm_dir/console.log" 2>/dev/null)"
	return 125
}

vm_run() {
	vm_run_name=$1
	vm_run_topo=$2
	vm_run_kver=$3
	vm_run_case=$4
	vm_run_time=$5
	shift 5
	vm_start "$vm_run_name" "$vm_run_topo" "$vm_run_kver" "$vm_run_case" "$@" ||
		return 2
	vm_wait "$vm_run_name" "$vm_run_time"
}

vm_scan() {
	vm_allowed=/dev/null
	[ -e "$OUT/console.allow" ] && vm_allowed=$OUT/console.allow
	[ -e "$OUT/$1/console.log" ] || return 0
	vm_found=$(scan_console "$OUT/$1/console.log" "$vm_allowed") && return 0
	vm_say "the kernel of guest $1 complains, which fails every run; mend the cause, or allow a line that the case provokes (vm_allow); from the console of guest $1 ($OUT/$1/console.log):"
	vm_say "$vm_found"
	return 1
}

vm_forget() {
	rm -f "$OUT/$1/initrd" "$OUT/$1/case.cpio" "$OUT/$1/case.img" "$OUT/$1"/ram "$OUT/$1"/node*-memory "$OUT/$1/qmp.in" \
		"$OUT/$1/qmp.out" "$OUT/$1/result.in" "$OUT/$1/result.out" \
		"$OUT/$1/exit" "$OUT/$1/qmp.lock"
}

# vm_stop NAME: end it, whatever it does
vm_stop() {
	vm_dir=$OUT/$1
	for vm_file in qemu keeper serve; do
		[ -e "$vm_dir/$vm_file.pid" ] || continue
		vm_pid=$(cat "$vm_dir/$vm_file.pid")
		if [ "$vm_file" = qemu ] && [ ! -e "$vm_dir/qemu.rc" ]; then
			kill -KILL "$vm_pid" 2>/dev/null
			# a large one needs a moment on a busy machine; its keeper buries it
			timeout --foreground 10 tail --pid="$vm_pid" -s 0.05 -f /dev/null
		elif [ "$vm_file" = keeper ]; then
			# its TERM is for QEMU, and nobody will read what it writes, but for
			# a QMP call that waits for its reply
			kill -KILL "$vm_pid" 2>/dev/null
			[ -e "$vm_dir/qemu.rc" ] || echo 137 >"$vm_dir/qemu.rc"
			[ ! -p "$vm_dir/qmp.out" ] ||
				echo '{"event":"EXITED"}' 1<>"$vm_dir/qmp.out"
		elif [ "$vm_file" != qemu ]; then
			kill -TERM "$vm_pid" 2>/dev/null
		fi
		rm -f "$vm_dir/$vm_file.pid"
	done
	vm_forget "$1"
}

# vm_guard: clean-up for a shell that is killed and cannot do it
vm_guard() {
	[ -z "$vm_guard_pid" ] || return 0
	(
		trap "" HUP INT TERM
		exec 9>"$OUT/.guard"
		flock 9
		watch_end "$$"
		# it may have been killed before anything but the pipes was there
		for vm_file in "$OUT"/*/exit; do
			vm_file=${vm_file%/exit}
			[ -p "$vm_file/exit" ] && vm_stop "${vm_file##*/}"
		done
		for vm_each in wire_kill sc_tidy sc_drop_images; do
			if command -v "$vm_each"; then
				"$vm_each"
			fi
		done
	) </dev/null >/dev/null 2>&1 6>&- &
	vm_guard_pid=$!
}

# vm_cleanup: end all guests of this shell
vm_cleanup() {
	for vm_each in $vm_names; do
		vm_stop "$vm_each"
	done
	vm_names=
	# last, since this shell may be killed meanwhile
	[ -z "$vm_guard_pid" ] || kill -KILL "$vm_guard_pid" 2>/dev/null
	vm_guard_pid=
	rm -f "$OUT/.guard"
}

if command -v at_exit >/dev/null; then
	at_exit vm_cleanup
else
	trap vm_cleanup EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
fi
