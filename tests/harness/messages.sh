#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: each error of the launcher and of the maker of snapshots says what happened, why, and what to do
# tags: harness
# tier: check
# timeout: 120
. "$TOP/scenarios/lib/case.sh"
need_tool cpio flock jq setpriv

# A machine, a case and a guest that are right, and an emulator that ends at once; each test spoils one of them
mkdir -p guest case bin
cat >one.topo <<'END'
machine q35 - memory=256M cpus=1
rp0 root-port pcie.0
nvme0 nvme rp0 image=disk0
END
printf '#!/bin/sh\n' >case/run
printf '#!/bin/sh\necho "this emulator is none" >&2\nexit 1\n' >bin/qemu
chmod +x case/run bin/qemu
for file in vmlinux key; do
	echo "$file" >guest/$file
done
echo none | cpio -o -H newc --quiet >guest/base.cpio 2>/dev/null || :
: >all

# says DESC REGEX COMMAND...: it fails, and one line of what it prints matches
says() {
	says_what=$1
	says_regex=$2
	shift 2
	check_fails "$says_what" "$says_regex" "$@"
	cp .check said
	cat said >>all
}

# ---- the launcher ----

# launcher COMMANDS: in a shell of its own, with the launcher; functions take the place of programs
launcher() {
	(
		QEMU=$OUT/bin/qemu VM_GUEST=$OUT/guest PEERLANE_SNAPSHOT=0 PEERLANE_CACHE=$OUT/cache
		rm -rf console.allow
		# shellcheck source=scenarios/lib/machine/vm.sh
		. "$TOP/scenarios/lib/machine/vm.sh" || exit
		eval "$1"
		launcher_status=$?
		vm_cleanup
		exit "$launcher_status"
	) </dev/null
}
start='vm_start bad "$OUT/one.topo" 7.2 "$OUT/case"'
snap="PEERLANE_SNAPSHOT=1; $start"
says "an image" 'no image /nothing: .* must exist before the guest starts .truncate' launcher 'vm_image disk0 /nothing'
says "an allowance" 'vm_allow x: no reason is given, .*: add it as the second argument' launcher 'vm_allow x'
says "a topology" 'no topology nowhere: it is neither a name nor a file; .*draw -l lists' launcher 'vm_start bad nowhere 7.2 case'
says "a part of the build" 'no .*/none: this part is not built .run: make.' launcher "QEMU=\$OUT/none; $start"
says "a case" 'no program .*/guest/run, which the guest would run: make an executable' launcher 'vm_start bad "$OUT/one.topo" 7.2 "$OUT/guest"'
says "a drive" 'no drive of one.topo takes the image disk9 .its drives take: disk0.: name one of these, or give' launcher \
	"vm_image disk9 \"\$OUT/one.topo\"; $start"
says "a key" 'no snapshot of this machine can be looked for: a file of the build cannot be read .*run: make' launcher "VM_GUEST=\$OUT/other; mkdir -p other; cp guest/vmlinux guest/base.cpio other/; $snap"
says "another maker" 'the snapshot .* is not there: another run has held .*lock for 900 s .*; end that run, or .*PEERLANE_SNAPSHOT=0' launcher "flock() { return 1; }; $snap"
says "no room for it" 'the snapshot .* removed again three times: others need its room; free room there, raise VM_SNAPSHOTS_MIB' launcher "setpriv() { :; }; $snap"
says "no snapshot" 'no snapshot of this machine could be made, for the reason above; PEERLANE_SNAPSHOT=0 boots' launcher "setpriv() { return 1; }; $snap"
mkdir -p loaded
says "a snapshot that is broken" 'the snapshot here cannot be loaded: .*failed.*; remove that folder' launcher \
	'vm_qmp() { echo "\"status\": \"failed\""; }; vm_dir=$OUT/loaded vm_store=here; vm_loaded || { cat loaded/qemu.log; false; }'
echo no archive >guest/overlay.cpio
says "an archive" 'overlay.cpio is no archive: it has no end, .*run: make' launcher "$start"
rm guest/overlay.cpio
says "a case that is too large" 'the case takes more than the 1 GiB of the device .*: put large files on a drive' launcher "wc() { echo 2000000000; }; $start"
says "an emulator" 'guest bad: QEMU did not start; see its arguments .*/qemu.args. and its messages .*/qemu.log.:' launcher "$start"
check "... with them" grep -q 'this emulator is none' said
says "QMP" 'QMP is busy: another command has waited .* 20 s; look at .*/qemu.log, or try again' launcher 'flock() { return 1; }; vm_qmp loaded "{}"'
check_eq "... which a guest that asks for counters is told" "error QMP is busy: another command has waited for QEMU's reply for 20 s" \
	"$(launcher 'flock() { return 1; }; vm_host_command loaded "counters gpu0"' | sed 's/;.*//')"
says "a guest that was not started" 'no guest nobody runs: vm_start did not start it, .*; call vm_start first' launcher 'vm_wait nobody 1'
mkdir -p late quiet
mkfifo late/exit quiet/exit
says "no end" 'guest late: no end within 5 seconds; its console .*/late/console.log. shows whether it hangs or needs more time' launcher 'timeout() { return 1; }; vm_wait late 5'
says "no status" 'guest quiet ended without a status: it powered off or panicked, or QEMU failed .its status: 3.; see .*/quiet/console.log' launcher \
	'timeout() { echo 3; }; echo 1 >quiet/serve.pid; : >quiet/qemu.log; : >quiet/console.log; vm_wait quiet 5'
mkdir -p loud
echo 'WARNING: CPU: 0 PID: 1 at here.c:1' >loud/console.log
says "the kernel" 'the kernel of guest loud complains, .*; mend the cause, or allow .*vm_allow.*loud/console.log' launcher 'vm_scan loud'
rm loud/console.log
: >.guard
# it asks before there is anything that it could be asked by
printf '#!/bin/sh\nexit 1\n' >bin/flock
chmod +x bin/flock
says "another run" 'the clean-up of an earlier run in .* has held .*/.guard for 30 s: wait for its end, or work in another folder' env PATH="$OUT/bin:$PATH" sh -c '. "$TOP/scenarios/lib/machine/vm.sh"'
rm .guard bin/flock

# what a guest is told
asks() { # LINE REGEX
	check "a guest that asks for \"$1\"" sh -c 'printf "%s\n" "$1" | grep -qE "^error: $2"' sh "$(launcher "vm_qmp() { return 1; }; vm_host_command guest '$1'")" "$2"
}
asks "set gpu0" "set needs three words, and got 1: set DEV PROPERTY VALUE"
asks nonsense "no command nonsense: it is neither qmp, set, .* nor a function host_nonsense of the scenario"
asks 'non/sense' "no command non/sense: it is neither qmp, .* nor a function host_NAME of the scenario"
asks 'qmp {}' "QEMU refused the command or did not reply within 20 s; look at qemu.log"

# ---- the maker of snapshots ----

# fakes NAME SCRIPT: a program for the next of them
fakes() {
	printf '#!/bin/sh\n%s\n' "$2" >"fake/$1"
	chmod +x "fake/$1"
}
# maker: of the machine above, with the programs of fake/
maker() {
	rm -rf kept made
	mkdir kept
	printf '@DIR@/%s\n' here >kept/args
	: >allow
	env PATH="$OUT/fake:$PATH" sh "$TOP/scenarios/lib/machine/snapshot.sh" "${store:-$OUT/made/snapshot}" "${qemu:-$OUT/bin/qemu}" "$OUT/kept/args" "$OUT/allow" \
		"${cpio:-$OUT/guest/base.cpio}"
}
# makes DESC REGEX: it fails and says so; then nothing is faked
makes() {
	says "$1" "^snapshot: $2" maker
	rm -rf fake
	mkdir fake
	store='' cpio='' qemu=''
}
mkdir fake
# an emulator that is ready, and stays until it is killed; its folder comes with its arguments
cat >bin/ready <<'END'
#!/bin/sh
echo "${CONSOLE-Linux version}" >"${1%/*}/console.log"
echo "${SAYS-@ready}" >"${1%/*}/result.out"
exec tail -f /dev/null
END
chmod +x bin/ready
# replies EVENT REPLY...: what QMP replies to the command with EVENT in it; all others are done
replies() {
	fakes timeout "case \$*,\$2 in *$1*,20) echo '$2'; exit ${3-0} ;; *tail*,20) exit 0 ;; *,20) echo '\"status\": \"completed\"'; exit 0 ;; esac
PATH=\${PATH#*:} exec timeout \"\$@\""
}
none=$OUT/one.topo/vm/snapshot
store=$none
makes "no folder" 'cannot make the folder .*, for the reason above: set PEERLANE_CACHE'
# shellcheck disable=SC2016 # the script's
fakes mkdir '[ "$1" = -p ] || exit 1; PATH=${PATH#*:} exec mkdir "$@"'
makes "no folder for its work" 'cannot make the folder .*partial.*, for the reason above: set PEERLANE_CACHE'
fakes flock 'exit 1'
makes "another one" 'another run has held .*/snapshot.lock for 700 s .*: end that run, and try again'
cpio=$OUT/guest/none.cpio
makes "no initramfs" 'cannot write the initramfs and the case to .*, for the reason above: free room'
fakes mkfifo 'exit 1'
makes "no pipes" 'cannot make pipes in .*, for the reason above: set PEERLANE_CACHE'
makes "an emulator that ends" "the machine ended before it was ready: QEMU ended, with no complaint on its console; correct the machine, QEMU's arguments .$OUT/kept/args. or"
check "... with what it printed" grep -q '^snapshot: QEMU: this emulator is none' said
# when the emulator has written both
fakes timeout 'read -r line; exit 124'
qemu=$OUT/bin/ready
makes "a machine that hangs" 'the machine was not ready within 600 s: it hangs .*, or this computer has too much other work; mend that, or try again with fewer'
check "... and its console" grep -qx "snapshot: all of its console is in $OUT/kept/console.log" said
qemu=$OUT/bin/ready
export SAYS='init: no device'
makes "an init that ends" "the guest's init ended before it was ready: init: no device; correct the guest's image"
unset SAYS
unsaved='QEMU cannot save the machine to [^ ]*/made .free room there, or boot without a snapshot: PEERLANE_SNAPSHOT=0.: '
qemu=$OUT/bin/ready
replies qmp_capabilities '{"error": "no such capability"}' 1
makes "it cannot be saved" "$unsaved.*no such capability"
qemu=$OUT/bin/ready
replies query-migrate '' 1
makes "no reply while it is saved" "${unsaved}QEMU does not reply"
qemu=$OUT/bin/ready
replies query-migrate '"status": "failed", "error-desc": "No space left"'
makes "saving fails" "$unsaved.*No space left"
qemu=$OUT/bin/ready
replies query-migrate '"status": "active"'
fakes sleep 'exit 0'
makes "saving takes too long" "${unsaved}60 s were not enough"
qemu=$OUT/bin/ready
replies quit '' 1
makes "it does not end" 'QEMU does not end when it is told to: it does not reply; boot without a snapshot .PEERLANE_SNAPSHOT=0.'
qemu=$OUT/bin/ready
replies nothing ''
export CONSOLE='WARNING: CPU: 0 PID: 1 at there.c:1'
makes "its kernel complains" 'its kernel complains while it boots, and so would each guest: .*there.c:1.*; mend the cause, or allow the line .vm_allow.'
unset CONSOLE
rm -f kept/console.log
qemu=$OUT/bin/ready
replies nothing ''
fakes sync 'exit 1'
makes "it cannot be kept" 'cannot write it out to .*/snapshot, for the reason above: free room'

# ---- none was left out ----

# unsaid FUNCTION FILE: its messages that were not seen here, each value in them as $. One that is a value as a whole says
# nothing here.
unsaid() {
	sed -E ':again; s/[$]([(][^()]*[)]|[{][^{}]*[}]|[A-Za-z_]+|[0-9@*#])/\x01/; t again' "$2" | grep -oE "(^|[^a-z_])$1 \"[^\"]*[A-Za-z][^\"]*\"" |
		sed -E 's/^[^"]*"//; s/"$//' | sort -u | while IFS= read -r message; do
		grep -qE -e "$(printf '%s\n' "$message" | sed 's/[][\.*^$+?(){}|]/\\&/g; s/\x01/.*/g')\$" all || printf '%s\n' "$message" | tr '\001' '$'
	done
}
# the bundle's own message is that of build/bundle
check_eq "each error of the launcher was seen" 'the bundle has no $ (Contents, in its README.md); a checkout has it' "$(unsaid vm_say "$TOP/scenarios/lib/machine/vm.sh")"
check_eq "each error of the maker was seen" "" "$(unsaid die "$TOP/scenarios/lib/machine/snapshot.sh")"
cat >bad.sh <<'END'
die "something else"
die "$unsaved: $(no "messages") of this kind"
die "cannot make the folder $work, for another reason: ${x}"
die "$@"
END
check_eq "others are seen, also those that begin as another does" '$: $ of this kind
cannot make the folder $, for another reason: $
something else' "$(unsaid die bad.sh)"
finish
