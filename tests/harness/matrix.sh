#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the matrix fails where a path is not the expected one, and says why
# tags: harness
# tier: check
# timeout: 120
. "$TOP/scenarios/lib/case.sh"
need_tool jq flock
need_file "$BUILD/guest/7.2/base.cpio" "$BUILD/guest/6.12/base.cpio"
matrix=$TOP/scenarios/matrix

# --- the real files ------------------------------------------------------------

check "every topology has expectations for every row" "$matrix" -l
"$matrix" -l >list
check "the list" "$matrix" -l --out listed
check_false "leaves nothing behind" test -e listed
check_eq "every topology is in it" "$("$TOP/scenarios/draw" -l | wc -l)" \
	"$(awk '{ print $1 }' list | sort -u | wc -l)"
check_eq "run-the-matrix.md says how many cells there are" "$(wc -l <list)" "$(sed -nE 's|^[0-9]+/([0-9]+) .*|\1|p; s/^([0-9]+) as expected.*/\1/p' \
	"$TOP/docs/how-to/run-the-matrix.md" | sort -u)"
# What Linux makes of each machine, as people have worked it out
check_eq "what is expected of a copy with kernel 7.2" "$(cat <<'END'
acs-redirect p2p-root p2p-root
cx skip skip no drive
cx-two-root-ports skip skip no drive
dgx p2p p2p
epyc-two-root-ports p2p-root p2p-root
iommu-off p2p p2p
iommu-passthrough p2p-root p2p-root
iommu-translated p2p-root p2p-root
no-drive skip skip no drive
numa p2p p2p
same-switch p2p p2p
small-bar1 p2p p2p
small-hosts-rxe skip skip no drive
two-drives p2p p2p
two-gpus p2p p2p
two-gpus-two-nvme p2p p2p
two-hosts-rxe p2p p2p
two-hosts-rxe-no-window p2p p2p
two-root-ports bounce bounce cannot be used for peer-to-peer DMA
two-switches p2p p2p
END
)" "$(awk '$2 == "gds-direct" && $3 == "7.2" { $2 = $3 = ""; print }' list | tr -s ' ' | sed 's/ $//')"
check_eq "and with 6.12, which has no P2PDMA" "bounce bounce P2PDMA
skip skip no drive" "$(awk '$3 == "6.12" { $1 = $2 = $3 = ""; print }' list | sed 's/^ *//' | tr -s ' ' | sort -u)"
expected() { # MACHINE: of gds-raw on it
	"$matrix" -l --scenario gds-raw --topology "$1" | awk '{ print $4, $5 }'
}
check_eq "an IOMMU makes Linux redirect" "p2p-root p2p-root" "$(expected same-switch,cpu=EPYC,iommu=translated)"
check_eq "which it cannot in a switch without ACS" "p2p p2p" "$(expected same-switch,iommu=translated,sw0.acs=off)"
check_eq "a root complex that is not trusted" "bounce bounce" "$(expected same-switch,iommu=passthrough)"
check_eq "redirect in the lower of two switches" "bounce bounce" "$(expected two-switches,sw1.acs=redirect)"
check_eq "and in one that is on no way" "p2p p2p" "$(expected two-gpus-two-nvme,sw1.acs=redirect)"
check_false "a kernel without P2PDMA never takes p2p" \
	grep -qE ' 6\.12 +.*p2p( |-)' list

# --- a run that is made up -------------------------------------------------------

# fake SCENARIO --topology T --kernel K --out DIR: a result as T.result says
cat >fake <<'END'
#!/bin/sh
dir=$7
name=$(basename "$3" .topo)
echo "$name $1 $5" >>"$FAKE/ran"
[ "$name" != hangs ] || { echo $$ >"$FAKE/pid"; trap 'echo ended >"$FAKE/end"; exit 143' TERM; sleep 60 & wait; }
[ ! -e "$FAKE/$name.result" ] || jq -c --arg s "$1" --arg k "$5" '
	{up: 0, down: 0} as $none | .scenario = $s | .kernel = $k |
	{topology: "t", verdict: "pass", devices: [
		{name: "m", kind: "q35", parent: "-"}, {name: "rp0", kind: "root-port", parent: "pcie.0"},
		{name: "d", kind: "nvme", parent: "rp0", image: "disk0"}], links: []} + . |
	.counted = {c: {links: [{link: "rp0", below: "d",
		peer: (.peer // $none), redirected: (.redirected // $none)}]}} |
	.transfers = [(.transfers // [])[] | {label: "c", bytes: 100, host_bytes: 0, reason: ""} + .]' \
	"$FAKE/$name.result" >"$dir/result.json"
END
chmod +x fake
FAKE=$PWD
MATRIX_RUN=$PWD/fake
export FAKE MATRIX_RUN

# cell NAME EXPECTATION RESULT: a topology with both
cell() {
	printf 'm q35 -\nrp0 root-port pcie.0\nd nvme rp0 image=disk0\n' >"$1.topo"
	printf '# comment\n\n%s\n' "$2" >"$1.expect"
	printf '%s\n' "$3" >"$1.result"
}

# of NAME…: run gds-raw on these; what became of each cell, in "said"
of() {
	rm -f ran matrix.json
	for name; do
		shift
		set -- "$@" --topology "./$name.topo"
	done
	"$matrix" --scenario gds-raw --json matrix.json --out "$PWD/out" "$@" >shown 2>&1
	status=$?
	said=$(jq -r '.cells[] | "\(.topology) \(.got.read) \(.got.write) \(.verdict) \(.why)"
		| sub(" $"; "")' matrix.json)
}

# wrong NAME WORDS: this cell is refused, with these words
wrong() {
	of "$1"
	check_eq "$1: fails" 1 "$status"
	check "$1: says why" grep -qE "^! $1, gds-raw, kernel 7.2: .*$2" shown
	check "$1: says how to run it again" grep -qF -- \
		"again: scenarios/matrix --topology ${PWD#"$TOP"/}/$1.topo --scenario gds-raw --kernel 7.2" shown
}

p2p='{"transfers":[{"what":"read","path":"p2p"},{"what":"write","path":"p2p"}],"peer":{"up":100,"down":100}}'
staged='{"transfers":[{"what":"read","path":"bounce","host_bytes":100,"reason":"the kernel said no"},
{"what":"write","path":"bounce","host_bytes":100,"reason":"the kernel said no"}]}'

cell direct '* p2p p2p' "$p2p"
cell root '* p2p-root p2p-root' \
	"$(printf '%s' "$p2p" | sed 's/"peer":/"redirected":/')"
cell mixed '* p2p bounce kernel said' '{"transfers":[{"what":"read","path":"p2p"},
{"what":"write","path":"bounce","host_bytes":100,"reason":"the kernel said no"}],"peer":{"up":100,"down":0}}'
cell staged '* bounce bounce ^the kernel said [a-z]+$' "$staged"
cell skipped '* skip skip no drive' '{"verdict":"skip","reason":"it has no drive"}'
cell order '* bounce bounce
gds-raw p2p p2p
gds-raw@6.12 skip skip' "$p2p"
of direct root mixed staged skipped order
check_eq "as expected: status 0" 0 "$status"
check_eq "each cell's path, told by its drive's link" \
	"direct p2p p2p pass
root p2p-root p2p-root pass
mixed p2p bounce pass
staged bounce bounce pass
skipped skip skip pass
order p2p p2p pass" "$said"
check_eq "each ran once" 6 "$(sort -u ran | wc -l)"
check_eq "and no more" 6 "$(wc -l <ran)"
check "the table has them" grep -qE '^mixed +p2p/bounce$' shown
check "and the sum" grep -qx '6 as expected, 0 not, in [0-9]* s' shown
check "the page is made" grep -q '<td class="pass">p2p-root</td>' out/matrix.html

cell other '* p2p p2p' "$staged"
wrong other 'read took bounce instead of p2p .the kernel said no.; write took bounce instead of p2p'
check "other: is marked in the table" grep -qE '^other +bounce !$' shown
of other direct
check_eq "others go on" 'other bounce bounce fail;direct p2p p2p pass' \
	"$(printf '%s\n' "$said" | cut -d ' ' -f 1-4 | paste -sd ';')"
cell through '* p2p p2p' "$(cat root.result)"
wrong through 'read took p2p-root instead of p2p'
cell below '* p2p-root p2p-root' "$p2p"
wrong below 'read took p2p instead of p2p-root'
cell lie '* p2p p2p' "$(printf '%s' "$p2p" | sed 's/"path":"p2p"/"path":"p2p","host_bytes":7/')"
wrong lie 'the library says p2p, but the drive moved 7 bytes through host memory'
cell lie2 '* bounce bounce said no' "$(printf '%s' "$staged" | sed 's/:100/:99/g')"
wrong lie2 'the library says bounce, but the drive moved only 99 bytes'
cell lie3 '* p2p p2p' "$(printf '%s' "$p2p" | sed 's/"up":100/"up":99/')"
wrong lie3 'did not carry it'
cell half '* p2p p2p' '{"transfers":[{"what":"read","path":"p2p"}],"peer":{"up":100,"down":0}}'
wrong half 'write took no way at all instead of p2p'
cell reason '* bounce bounce P2PDMA' "$staged"
wrong reason 'the reason should match "P2PDMA", and is: the kernel said no'
cell excuse '* bounce bounce' "$staged"
wrong excuse 'there should be no reason, and it is: the kernel said no'
cell broken '* p2p p2p' '{"verdict":"fail","reason":"data is right"}'
wrong broken 'the run failed: data is right'
cell nothing '* p2p p2p' ''
rm nothing.result
wrong nothing 'the run left no result'
cell noskip '* skip skip no drive' "$p2p"
wrong noskip 'read took p2p instead of skip'
cell skips '* p2p p2p' "$(cat skipped.result)"
wrong skips 'read took skip instead of p2p .it has no drive.'

"$matrix" --scenario gds-direct --topology ./direct.topo --out out >shown 2>&1
check_eq "a row for each of the scenario's kernels" 'direct gds-direct 6.12
direct gds-direct 7.2' "$(tail -n 2 ran | sort)"

# ended from outside, it ends what it has started
cell hangs '* p2p p2p' "$p2p"
"$matrix" --scenario gds-raw --topology ./hangs.topo --out out >shown 2>&1 &
pid=$!
tries=0
until [ -s pid ] || [ "$tries" -ge 100 ]; do
	tries=$((tries + 1))
	sleep 0.1
done
kill -TERM "$pid"
wait "$pid"
check_eq "ended by a signal" 130 $?
check_eq "so is the run" ended "$(cat end)"

# --- refused before anything runs ------------------------------------------------

# refused WORDS ARG…: status 64, one line with these words, and nothing has run
refused() {
	words=$1
	shift
	rm -f ran
	"$matrix" --out "$PWD/out" "$@" >refused.out 2>refused.err
	status=$?
	if [ "$status" -eq 64 ] && [ ! -e ran ] && [ ! -s refused.out ] &&
		tail -n 1 refused.err | grep -qE -e "$words"; then
		pass "refused: $words"
	else
		fail "refused: $words" "status $status
$(cat refused.out refused.err)"
	fi
}
one_line() {
	refused "$@"
	check_eq "in one line" 1 "$(wc -l <refused.err)"
}
one_line 'no topology is called "no-such" .there are:.* same-switch ' --topology no-such
one_line 'there is no topology file ./no-such' --topology ./no-such
one_line 'no scenario is called "no-such" .there are:.* gds-direct ' --scenario no-such
one_line 'gds-bad-input is no row of the matrix' --scenario gds-bad-input
one_line 'no guest with kernel "2.4" .there are: 7.2 6.12' --kernel 2.4
one_line 'no row of the matrix is left' --scenario gds-raw --kernel 6.12
one_line 'cannot write no/such/file' --json no/such/file
one_line '-j needs a number above 0' -j 0
one_line '--json needs a value' --json
refused 'unknown argument nonsense' nonsense
cp direct.topo alone.topo
one_line 'nothing is expected of the topology ./alone.topo: it has no gpu0, and there is no .*alone.expect' \
	--topology ./alone.topo
sed 's/rp0 image/rp9 image/' direct.topo >crooked.topo
cp direct.expect crooked.expect
one_line 'crooked.topo:3: ' --topology ./crooked.topo

expects() { # WORDS LINE
	cp direct.topo bad.topo
	printf '%s\n' "$2" >bad.expect
	one_line "bad.expect:1: $1" --topology ./bad.topo
}
expects 'a line is SCENARIO READ WRITE' '* p2p'
expects 'no scenario is called nobody' 'nobody p2p p2p'
expects '"direct" is no path' '* direct p2p'
expects '"P2P" is no path' '* p2p P2P'
expects '"new" is no kernel' '*@new p2p p2p'
expects 'a run is skipped as a whole' '* skip p2p'
printf 'gds-xfs p2p p2p\n' >bad.expect
one_line 'bad.expect: no line fits gds-' --topology ./bad.topo
check "--help" "$matrix" --help
finish
