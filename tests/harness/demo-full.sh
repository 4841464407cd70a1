#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: scenarios/demo on a disk that gets full in mid-run says so, fails, and leaves no part of a report
# tags: harness
# tier: check
# timeout: 60
. "$TOP/scenarios/lib/case.sh"
need_tool jq unshare mount

# The demo with a scenarios/run that boots nothing: of gds-raw it fills the disk, and then
# writes what it can of a result.  One at a time, so that the other one is there by then.
mkdir -p tree/scenarios bin
ln -s "$TOP"/scenarios/* tree/scenarios/
ln -s "$TOP/images" tree/images
ln -s "$TOP/userlib" tree/userlib
rm tree/scenarios/run
printf '#!/bin/sh\necho 1\n' >bin/nproc
chmod +x bin/nproc
cat >good.json <<'END'
{"scenario": "gds-direct", "topology": "same-switch", "verdict": "pass", "devices": [], "links": [],
 "transfers": [{"what": "read", "path": "p2p", "bytes": 1048576, "host_bytes": 0, "cpu_seconds": 0.5}]}
END
cat >tree/scenarios/run <<'END'
[ "$2" = --out ] || exit 64
echo "KTAP version 1"
if [ "$1" = gds-direct ]; then
	cp "$CASE/good.json" "$3/result.json" && echo "ok 1 - it is right" && exit
fi
mount -o "remount,size=$(du -sk "$BUILD" | cut -f 1)k" "$BUILD" || exit
# a block may be left; then not all of this
yes "$(cat "$CASE/good.json")" 2>/dev/null | head -c 1M >"$3/result.json" 2>"$CASE/cause" && exit
echo "not ok 1 - the disk image is made"
echo "# cp: $(sed 's/.*: //' "$CASE/cause")"
[ -z "$AGAIN" ] || mount -o remount,size=2G "$BUILD"
exit 1
END

# demo NAME: the status, by itself on a disk of 2 GiB, of which nothing is used; $AGAIN: there is room again for the report
demo() {
	mkdir -p disk
	# shellcheck disable=SC2016 # for the inner shell
	CASE=$PWD BUILD=$PWD/disk PATH="$PWD/bin:$PATH" unshare --map-root-user --mount sh -c '
		mount -t tmpfs -o size=2G none disk || exit 99
		sh tree/scenarios/demo gds-direct gds-raw >"$1.out" 2>"$1.err"
		echo $? >status
		find disk -maxdepth 1 -type f >"$1.left"
		[ ! -e disk/report.html ] || cp disk/report.html page.html' - "$1"
	cat status
}

check_eq "full to the end: it fails" 1 "$(AGAIN='' demo full)"
check "the disk was full" grep -q 'No space left on device$' cause
check "what was complete is shown" grep -qE '^gds-direct .* pass$' full.out
check "what failed, and of what" grep -qxF '          not ok 1 - the disk image is made' full.out
check "it says that the disk is full" grep -qE '^the disk of .*/out/demo has 0 MiB left, and this needs 512$' full.out
check "it says why there is no report" grep -q 'No space left on device$' full.err
check_false "and names none" grep -q '^report:' full.out
check_eq "there is no part of one" '' "$(cat full.left)"

check_eq "full for a while: it fails as well" 1 "$(AGAIN=1 demo again)"
check "it says which scenario has no result" grep -qxF 'no result of gds-raw: not in the table, nor in the report' again.err
check "the report is whole" grep -q '</html>' page.html
finish
