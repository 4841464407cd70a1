#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the programs of scenarios/ take arguments alike, and wrong ones get one clear line before anything boots
# tags: harness
# tier: check
# timeout: 60
. "$TOP/scenarios/lib/case.sh"
need_file "$BUILD/guest/7.2/base.cpio"

# refused WORDS COMMAND…: status 64, one line on standard error, no other output
refused() {
	words=$1
	shift
	"$@" >refused.out 2>refused.err
	status=$?
	name=${1##*/}
	if [ "$status" -eq 64 ] && [ ! -s refused.out ] &&
		[ "$(wc -l <refused.err)" -eq 1 ] &&
		grep -qE -e "$words" refused.err; then
		pass "$name: $words"
	else
		fail "$name: $words" "status $status
$(cat refused.out refused.err)"
	fi
}

# usage WORDS COMMAND…: the same below the usage
usage() {
	words=$1
	shift
	"$@" >refused.out 2>refused.err
	status=$?
	if [ "$status" -eq 64 ] && [ ! -s refused.out ] &&
		grep -q '^usage: ' refused.err &&
		tail -n 1 refused.err | grep -qE -e "$words"; then
		pass "${1##*/}: $words"
	else
		fail "${1##*/}: $words" "status $status
$(cat refused.out refused.err)"
	fi
}

printf 'm q35 -\nrp0 root-port pcie.0 speed=9\n' >bad.topo
mkdir folder

# --- all six alike -------------------------------------------------------------------

programs='run try demo matrix draw report'
options() { # PROGRAM: the options that its help has, those with a value with =
	"$TOP/scenarios/$1" --help | sed -nE 's/^  (-[a-zA-Z]|--[a-z]+)( [A-Z]\S*)?( .*)?$/\1\2/p' |
		sed 's/ .*/=/'
}
for program in $programs; do
	command=$TOP/scenarios/$program
	for help in -h --help; do
		"$command" $help >help.out 2>err
		check_eq "$program $help: its status, and nothing on standard error" "0 0" "$? $(wc -l <err)"
		check "$program $help: usage first, what it does, exit statuses last" awk -v name="scenarios/$program" '
			NR == 1 { good = index($0, "usage: " name " ") == 1 }
			/^  -h, --help  +this text$/ { help = 1 }
			/exit status is/ { status = 1 }
			END { exit !(good && help && status) }' help.out
	done
	usage "^scenarios/$program: unknown option --nonsense$" "$command" --nonsense
	usage "^scenarios/$program: unknown option -q$" "$command" -q
	options "$program" >options.list
	[ "$program" = demo ] || check "$program: options with a value are among them" grep -q "=$" options.list
	while read -r option; do
		case $option in
		*=) refused "^scenarios/$program: ${option%=} needs a value$" "$command" "${option%=}" ;;
		esac
	done <options.list
	case $program in
	draw | run | report | try) usage '.' "$command" ;;
	esac
done

# --- what is wrong with a value -----------------------------------------------------

run=$TOP/scenarios/run
out=$OUT/not-made
refused 'no scenario is called "no-such" .there are:.* gds-direct ' "$run" no-such --out "$out"
refused 'no scenario is called "lib"' "$run" lib --out "$out"
refused 'no scenario is called "../scenarios/gds-direct"' "$run" ../scenarios/gds-direct --out "$out"
refused 'one scenario at a time' "$run" gds-direct gds-raw --out "$out"
refused 'no topology is called "no-such" .there are:.* same-switch ' \
	"$run" gds-direct --out "$out" --topology no-such
refused 'no topology is called "no-such" ' "$run" gds-direct --out "$out" --topology no-such,cpu=EPYC
refused '.--topology needs a value' "$run" gds-direct --out "$out" --topology ''
refused '.--topology needs a value' "$run" gds-direct --out "$out" --topology=
refused 'there is no topology file ./no-such.topo' \
	"$run" gds-direct --out "$out" --topology ./no-such.topo
refused 'there is no topology file ./folder' "$run" gds-direct --out "$out" --topology ./folder
refused 'bad.topo:2: ' "$run" gds-direct --out "$out" --topology ./bad.topo
refused 'no guest with kernel "2.4" .there are: 7.2 6.12' "$run" gds-direct --out "$out" --kernel 2.4
refused 'no guest with kernel "6.0" ' "$run" gds-direct --out "$out" --kernel=6.0
refused 'cannot write no/such/file' "$run" gds-direct --out "$out" --json no/such/file
refused 'cannot write folder' "$run" gds-direct --out "$out" --json folder
refused 'cannot write to .*/bad.topo' "$run" gds-direct --out "$PWD/bad.topo"
check_false "and nothing was begun" test -e "$out"
for program in run matrix draw try; do
	set -- "$TOP/scenarios/$program"
	case $program in
	run) set -- "$@" gds-direct --out "$out" --topology ;;
	draw) ;;
	*) set -- "$@" --topology ;;
	esac
	word=
	[ "$program" != try ] || word=true
	refused 'a q35 has no key "colour" .it has: memory cpus cpu iommu nodes' "$@" same-switch,colour=red ${word:+"$word"}
	refused 'no device is called "gpu7", to have vram=1G' "$@" same-switch,gpu7.vram=1G ${word:+"$word"}
done

# a build without guests: the one that is known, and not there
mkdir build
refused 'the guest with kernel 7.2 is not built .run: make' \
	env BUILD="$PWD/build" "$run" gds-direct --out "$out" --kernel 7.2
refused 'the guest with kernel 6.1 is not built .run: make oldest-kernel' \
	env BUILD="$PWD/build" "$run" gds-direct --out "$out" --kernel 6.1
refused 'the guest with kernel 7.2 is not built .run: make' \
	env BUILD="$PWD/build" "$TOP/scenarios/matrix" --scenario gds-raw --out "$out"

demo=$TOP/scenarios/demo
refused 'no scenario is called "no-such"' env BUILD="$PWD/build" "$demo" gds-direct no-such
check "nothing was removed or begun" test ! -e build/out

# a disk with too little room
mkdir full
cat >full/df <<'END'
#!/bin/sh
echo "Filesystem 1024-blocks Used Available Capacity Mounted on"
echo "disk 1000000 692800 307200 70% /"
END
chmod +x full/df
refused 'the disk of .*/out.full has 300 MiB left, and this needs 512' \
	env PATH="$PWD/full:$PATH" "$run" gds-direct --out "$PWD/out.full"
refused 'the disk of .*/build/out/demo has 300 MiB left, and this needs 1024' \
	env PATH="$PWD/full:$PATH" BUILD="$PWD/build" "$demo" gds-direct
refused 'the disk of .*/cases.full has 300 MiB left, and this needs 512' \
	env PATH="$PWD/full:$PATH" "$TOP/tests/run" --out "$PWD/cases.full" static/tree

# who has a CDPATH gets what cd says besides
list() { # COMMAND
	(cd "$TOP" && CDPATH=$TOP "scenarios/$1" -l)
}
for command in run matrix draw; do
	check_eq "$command: a CDPATH does not lead it astray" \
		"$("$TOP/scenarios/$command" -l)" "$(list "$command")"
done
for script in "$TOP"/images/*/* "$TOP"/scenarios/* "$TOP"/tests/run; do
	[ ! -f "$script" ] || ! grep -q '[$](cd "[$](dirname' "$script" || fail "$script minds a CDPATH"
done
finish
