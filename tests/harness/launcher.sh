#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the launcher of guests tells a good end from every bad one
# tags: harness guest
# tier: check
# timeout: 240

. "$TOP/scenarios/lib/case.sh"
. "$TOP/scenarios/lib/machine/vm.sh"

need_tool jq cpio flock
need_file "$QEMU" "$BUILD/guest/7.2/base.cpio"

VM_TRACE=$VM_TRACE_NVME
truncate -s 64M disk.img
cat >one.topo <<'END'
machine q35 - memory=512M
rp0 root-port pcie.0
gpu0 gpu rp0 vram=64M
rp1 root-port pcie.0
nvme0 nvme rp1 image=disk0
END

case_dir() { # NAME, the guest's script on standard input
	mkdir -p "$1"
	cat >"$1/run"
	chmod +x "$1/run"
	echo nvme >"$1/modules"
}

# --- one guest that does what guests do --------------------------------------

vm_image disk0 "$PWD/disk.img"
case_dir case-talk <<'END'
#!/bin/sh
echo "ok 1 - from the guest"
tries=0
while [ ! -e /dev/nvme0n1 ] && [ $tries -lt 200 ]; do
	tries=$((tries + 1)); sleep 0.05
done
x=$(host ping "a b c") && [ "$x" = "pong a b c" ] && echo "ok 2 - host ping"
host no-such-command >/tmp/x && echo "not ok 3 - an unknown command fails"
host counters gpu0 >/tmp/counters && echo "ok 3 - $(head -c 20 /tmp/counters)"
host counters nothing >/tmp/x && echo "not ok 4 - no such device fails"
host set gpu0 fault-lost-irq 3 && echo "ok 4 - set"
host set gpu0 no-such-property 3 >/tmp/x && echo "not ok 5 - fails"
host own-command 7 >/tmp/x && [ "$(cat /tmp/x)" = "own 7" ] && echo "ok 5 - own" && echo 1..5
host trace-mark a >/tmp/x
dd if=/dev/nvme0n1 of=/dev/null bs=1M count=8 iflag=direct 2>/tmp/x
host trace-mark b >/tmp/x
dd if=/dev/zero of=/dev/nvme0n1 bs=1M count=4 seek=16 oflag=direct 2>/tmp/x
host trace-mark c >/tmp/x
host stay-until-looked-at >/tmp/x
exit 42
END
host_own_command() {
	echo "own $2"
}
mkfifo looked arrived
host_stay_until_looked_at() {
	echo here >arrived
	cat looked
}

vm_start talk "$PWD/one.topo" 7.2 "$PWD/case-talk"
check_eq "a guest starts" 0 "$?"
check_eq "and speaks to the host" here "$(timeout --foreground 60 cat arrived)"
check_eq "QMP answers" true "$(vm_qmp talk '{"execute":"query-status"}' |
	jq .return.running)"
check_fails "an error of QMP is an error" CommandNotFound vm_qmp talk '{"execute":"no-such"}'
check_fails "so is no JSON" "not a JSON object" vm_qmp talk 'hello'
check_eq "a property is what the guest has set" 3 \
	"$(vm_qom_get talk /machine/peripheral/gpu0 fault-lost-irq)"
check "a BAR is where the guest has put it" sh -c \
	'echo "$1" | grep -qE "^[0-9]+ 67108864$"' sh "$(vm_bar talk gpu0 1)"
check "it gets its answer" timeout --foreground 20 sh -c "echo go >looked"
vm_wait talk 60
check_eq "the guest's status comes out" 42 "$?"
ktap_from talk/result.log
check_eq "all of its lines came out" 5 "$(grep -c '^ok ' talk/result.log)"
check_eq "a trace between two marks has these reads and no others" \
	'{"read":8388608,"write":0}' "$(vm_trace talk a b |
		nvme_route_bytes '' | jq -c .host.data)"
check_eq "and these writes" '{"read":0,"write":4194304}' \
	"$(vm_trace talk b c | nvme_route_bytes '' | jq -c .host.data)"
check_eq "blocks tell data from other data" '{"read":0,"write":1048576}' \
	"$(vm_trace talk b c | nvme_route_bytes '' 32768:2048 |
		jq -c .host.data)"
check_eq "a range of addresses is told from host memory" 8388608 \
	"$(vm_trace talk a b | nvme_route_bytes 0:1099511627776:all |
		jq .all.data.read)"

# --- bad ends ----------------------------------------------------------------

case_dir case-hang <<'END'
#!/bin/sh
echo "ok 1 - before"
sleep 1000
END
vm_start hang "$PWD/one.topo" 7.2 "$PWD/case-hang"
pid=$(cat hang/qemu.pid)
vm_wait hang 6 2>hang.err
check_eq "a guest that hangs is 124" 124 "$?"
check_false "and its emulator is gone" lives "$pid"

case_dir case-warn <<'END'
#!/bin/sh
echo "ok 1 - before"
echo "WARNING: CPU: 0 PID: 1 at here.c:1" >/dev/kmsg
exit 0
END
VM_TRACE=
vm_run warn "$PWD/one.topo" 7.2 "$PWD/case-warn" 60 2>warn.err
check_eq "a guest whose kernel complains is 99" 99 "$?"
check_eq "no trace is written that nobody asked for" 0 "$(wc -c <warn/trace.log)"
check "and the line is shown" grep -q 'here.c:1' warn.err
check_fails "an allowance without a reason is refused" "no reason is given" vm_allow 'here[.]c'
vm_allow 'here[.]c' 'the point of this case'
vm_scan warn
check_eq "one with a reason counts" 0 "$?"

case_dir case-crash <<'END'
#!/bin/sh
echo c >/proc/sysrq-trigger
sleep 100
END
vm_run crash "$PWD/one.topo" 7.2 "$PWD/case-crash" 60 2>crash.err
check_eq "a guest that panics is found out by its console" 99 "$?"
check "and its console is named, with the panic in it" sh -c 'grep -qF "from the console of guest crash ($1/crash/console.log):" crash.err &&
	grep -q "Kernel panic" crash.err' sh "$OUT"

case_dir case-vanish <<'END'
#!/bin/sh
poweroff -f
sleep 100
END
vm_run vanish "$PWD/one.topo" 7.2 "$PWD/case-vanish" 60 2>vanish.err
check_eq "a guest that ends without a status is 125" 125 "$?"

# the panic's console is a fixture, not this case's
rm -f crash/console.log

# --- what does not start -----------------------------------------------------

check_fails "a bad topology" "no topology /nonexistent.topo" vm_start bad /nonexistent.topo 7.2 "$PWD/case-talk"
echo "rp0 root-port pcie.0" >bad.topo
check_fails "a topology with a mistake" "bad.topo:1: the first line is the machine" \
	vm_start bad "$PWD/bad.topo" 7.2 "$PWD/case-talk"
check_fails "a kernel that is not there" "no .*/guest/9[.]9/.*: this part is not built [(]run: make[)]" \
	vm_start bad "$PWD/one.topo" 9.9 "$PWD/case-talk"
check_fails "a case without a program" "no program $PWD/run" \
	vm_start bad "$PWD/one.topo" 7.2 "$PWD"
check_fails "a missing image" "no image .*/nothing.img" vm_image disk1 "$PWD/nothing.img"
began=$(cut -d . -f 1 /proc/uptime)
check_fails "an option that QEMU refuses" "no-such-option: invalid option" \
	vm_start bad "$PWD/one.topo" 7.2 "$PWD/case-talk" -no-such-option
# not by the 20 s of a QMP call
check "is noticed at once" test $(($(cut -d . -f 1 /proc/uptime) - began)) -lt 15
finish
