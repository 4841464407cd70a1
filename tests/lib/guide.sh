# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# Follows a page of docs/ to the letter; sourced after case.sh.

# guide_tree: a copy of the checkout in tree/, with what is built: as links, but not symbolic ones, as the build
# root shows nothing outside of tree/
guide_tree() {
	mkdir -p tree/build
	for guide_each in docs images scenarios tests userlib versions.mk; do
		cp -Rp "$TOP/$guide_each" tree/ || exit 1
	done
	at_exit guide_unlink
	for guide_each in $GUIDE_BUILT; do
		[ -e "$BUILD/$guide_each" ] || continue
		cp -RPl "$BUILD/$guide_each" tree/build/ 2>/dev/null && continue
		# Another file system
		rm -rf "tree/build/$guide_each"
		cp -RPp "$BUILD/$guide_each" tree/build/ || exit 1
	done
	[ ! -e "$BUILD/scenarios" ] || cp -Rp "$BUILD/scenarios" tree/build/
}
GUIDE_BUILT='guest kernel qemu userlib wire'

# so that a later build frees the space
guide_unlink() {
	for guide_each in $GUIDE_BUILT; do
		rm -rf "$OUT/tree/build/$guide_each"
	done
}

# guide_host COMMAND...: in tree/, as a user runs it, outside of the build root, whose /.host has the host's files
# (PEERLANE_KEEP_HOST of images/build/in-root).  Without these, in a root of its own; users other than root can
# enter neither, and stay where they are.
guide_host() {
	if [ "$(id -u)" != 0 ]; then
		(cd tree && env -u BUILD -u OUT -u TOP -u TIER "$@")
		return
	fi
	guide_way=
	[ ! -e "/.host$OUT/tree" ] || guide_way="chroot /.host"
	# shellcheck disable=SC2016,SC2086 # another shell's; two words
	env -u BUILD -u OUT -u TOP -u TIER -u PEERLANE_IN_ROOT -u PEERLANE_ROOT_KEY -u PEERLANE_FETCH_KEY \
		-u CC -u CXX -u CCACHE_DIR -u TMPDIR PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		$guide_way sh -c 'cd "$0" && exec "$@"' "$OUT/tree" "$@"
}

# guide_missing EXPECTED SAID: the first line of EXPECTED that SAID has not, behind those before it; … stands
# for anything, and as the columns of a table are as wide as their numbers, one blank for several
guide_missing() {
	awk '
		{ gsub(/ +/, " ") }
		FNR == NR { if ($0 !~ /^ *…?$/) want[++wanted] = $0; next }
		got < wanted {
			parts = split(want[got + 1], part, "…")
			rest = $0
			for (i = 1; i <= parts; i++) {
				if (!(at = index(rest, part[i])) && part[i] != "")
					next
				rest = substr(rest, at + length(part[i]))
			}
			got++
		}
		END { if (got < wanted) print want[got + 1] }' "$1" "$2"
}

# guide_steps PAGE N: each of the N blocks of sh of docs/PAGE is a step that works; what they printed is in
# step1.said and so on, and that of the last one in said.  A block of text behind a step is what it prints.
guide_steps() {
	rm -f step* expected*
	awk '/^```sh$/ { file = "step" ++n; next }
		/^```text$/ { file = "expected" n; next }
		/^```$/ { file = ""; next }
		file { print >file }' "$TOP/docs/$1"
	if [ "$(id -u)" = 0 ] && [ -e "/.host$OUT/tree" ]; then
		check "its commands run outside of the build root" \
			test "$(guide_host stat -c %d:%i /)" != "$(stat -c %d:%i /)"
	else
		skip_part "not root, or the build root does not show the host's files: the commands run in a root"
	fi
	check_eq "$1 has its steps" "$2" "$(find . -maxdepth 1 -name 'step*' | wc -l)"
	for guide_step in step[0-9] step[0-9][0-9]; do
		[ -e "$guide_step" ] || continue
		guide_host sh -e "../$guide_step" >said 2>&1
		check_eq "$guide_step: each command works" 0 $?
		cp said "$guide_step.said"
		sed 's/^/#   /' said | tail -n 30
		guide_expected=expected${guide_step#step}
		[ ! -e "$guide_expected" ] || check_eq "$guide_step: it prints what the page says" "" \
			"$(guide_missing "$guide_expected" said)"
	done
}

# guide_report PAGE LABEL: the report has a time line of LABEL, which is called modelled, and every drawing is readable
guide_report() {
	check "the report has a time line of the transfer" grep -qF "<h4>Modelled time line: $2</h4>" "$1"
	check "the drawings of the report are readable, in light and in dark mode" sh -c '
		awk -f "$1" "$2" >looked; cat looked; grep -qxE "schemes=2 drawings=[1-9][0-9]*" looked && test "$(wc -l <looked)" = 1' \
		sh "$TOP/tests/harness/report-layout.awk" "$1"
}
