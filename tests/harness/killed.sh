#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a runner that is killed outright leaves no emulator, no wire, no image and no memory behind
# tags: guest wire harness
# tier: all
# timeout: 200

. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/stopwatch.sh"

need_tool jq cpio flock
need_file "$BUILD/wire/peerlane-wire" "$BUILD/guest/7.2/rdma.cpio"

# of FOLDER: the processes that work in it, or were started with it
of() {
	for each in /proc/[0-9]*; do
		words=$(readlink "$each/cwd"; tr '\0' ' ' <"$each/cmdline") 2>/dev/null
		case $words in
		*"$1"*) echo "${each#/proc/}: $words" ;;
		esac
	done
}

talks() { # FOLDER: its guests do
	grep -q '^@host barrier up' "$1/a/result.log" 2>/dev/null
}
idle() { # FOLDER
	[ -z "$(of "$1")" ]
}

# kills PID FOLDER WHO
kills() {
	check "$3: its guests run" wait_for 90 talks "$2"
	at_exit "of $2 | sed 's/:.*//' | xargs -r kill -KILL 2>/dev/null"
	check "$3: two emulators and a wire work in its folder" \
		test "$(of "$2" | grep -cE 'qemu-system|peerlane-wire')" -eq 3
	kill -KILL "$1"
	check "$3 is killed: nobody works there any more" wait_for 30 idle "$2"
	of "$2" | sed 's/^/# left: /'
	check_eq "$3 is killed: no image, no memory, nothing for guests" '' \
		"$(find "$2" \( -name '*.img' -o -name '*.cpio' -o -name ram -o -name case -o -name '.run' \) -print)"
}

"$TOP/scenarios/run" --out "$OUT/scenario" two-hosts >said 2>&1 &
kills $! "$OUT/scenario" scenarios/run

mkdir -p cases/fix
cat >cases/fix/hosts.sh <<'END'
#!/bin/sh
# desc: fixture
# tier: check
# timeout: 150
exec "$TOP/scenarios/run" --out "$OUT" two-hosts
END
chmod +x cases/fix/hosts.sh
"$TOP/tests/run" --cases "$OUT/cases" --out "$OUT/tests" >said 2>&1 &
kills $! "$OUT/tests/fix/hosts" tests/run
# whoever cleans up for it ends the processes first, then removes these
noted() {
	[ ! -e tests/.run ]
}
check "tests/run is killed: its own notes are gone too" wait_for 30 noted
finish
