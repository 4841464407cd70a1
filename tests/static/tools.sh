#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: what scripts call outside of the build root is in a list: of the user's machine in host-tools.list, in a bundle in tools.list
# tier: check
# tags: static
# timeout: 120

. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/tree.sh"
need_tool shfmt jq
cd "$TOP" || exit 1
tree_files >"$OUT/files"
builtins='. : [ alias bg break cd command continue echo eval exec exit export false fg getopts hash jobs kill printf pwd read
readonly return set shift test times trap true type ulimit umask unalias unset wait'

# scripts <FILES: those that sh reads
scripts() {
	xargs awk 'FNR == 1 { if (/^#!\/bin\/(ba)?sh/ || FILENAME ~ /\.(sh|scn)$/) print FILENAME; nextfile }'
}
# commands FILE...: what commands.jq says of them, and of the scripts in their words; what could not be read is told in unread
commands() {
	for file; do
		# shellcheck disable=SC2094 # reads it, and names it in messages
		shfmt --filename "$file" --to-json <"$file"
	done 2>>"$OUT/unread" | jq -c -f tests/static/commands.jq >"$OUT/commands" 2>>"$OUT/unread"
	cat "$OUT/commands"
	jq -r '.script // empty' "$OUT/commands" >"$OUT/words.sh"
	[ ! -s "$OUT/words.sh" ] || commands "$OUT/words.sh"
}
# called LIBRARIES FILE...: programs that they call, which are neither a function there or in LIBRARIES, nor the shell's own
called() {
	{
		# shellcheck disable=SC2086 # a list
		commands $1 | jq -c 'select(.function)'
		shift
		commands "$@"
	} | jq -rs --arg builtins "$builtins" '[.[].program | strings | select(test("^([a-z[][A-Za-z0-9._+-]*|/[a-z/.-]*[a-z])$"))] -
		[.[].function] - ($builtins | split("[ \n]"; "")) | unique[]'
}
# head_of FILE: the lines until it enters the root for good, and to the end of an "if" around that; one that runs single commands
# there, with ENTER, has no such line
head_of() {
	awk '/exec .*in-root|^inside / { last = 1 } { print } last && /^[^\t]/ { exit }' "$1"
}

# ---- a bundle: scripts of scenarios/ on the host's side ----
sed -n 's,^scenarios/.*,^&\\(/\\|$\\),p' images/bundle/left-out.list >"$OUT/left-out"
grep '^scenarios/' "$OUT/files" | grep -vE '^scenarios/lib/guest/|/guest$' | grep -v -f "$OUT/left-out" | scripts >"$OUT/scenarios"
sed 's/#.*//' images/bundle/tools.list | awk 'NF { sub(/.*\//, "", $1); print (NF > 1 ? $2 : $1) }' >"$OUT/bundled"
# Of a program that is added, the bundle asks its own loader for the libraries; a checkout makes what a bundle has
printf '%s\n' ldd make >>"$OUT/bundled"
check "there are scripts to look at" test "$(wc -l <"$OUT/scenarios")" -ge 60
# shellcheck disable=SC2046 # no name in the tree has a blank
check_eq "a bundle has what scripts of scenarios/ call" "" "$(called "" $(cat "$OUT/scenarios") | grep -vxF -f "$OUT/bundled")"

# ---- the user's machine ----
outside='images/build/in-root images/build/build-root images/build/fetch images/build/mode images/build/lib.sh images/build/lands
	images/build/debian-root.sh images/build/apt.sh images/build/third-party images/build/fetch-arm64 images/build/fetch-docs
	images/build/fetch-kernel-source images/build/fetch-oldest-kernel images/build/dist images/build/clean-cache images/build/version
	images/build/install scenarios/lib/where.sh scenarios/lib/options.sh .ci/run'
mkdir -p "$OUT/heads"
# shellcheck disable=SC2086
grep -E '^(images|scenarios|tests)/' "$OUT/files" | grep -v /guest/ | scripts | xargs grep -lE '^[^#]*exec .*in-root|^inside |^[^#]*[$][{]ENTER:[+]' |
	grep -vxF -e tests/static/tools.sh | grep -vxF "$(printf '%s\n' $outside)" >"$OUT/entering"
while IFS= read -r file; do
	head_of "$file" >"$OUT/heads/$(echo "$file" | tr / .)"
done <"$OUT/entering"
check "there are scripts that enter the root" test "$(wc -l <"$OUT/entering")" -ge 10
# The goals of the GPU's machine compile there; their cases say what they need
awk '/^else$/ { inside = 1 } /^endif$/ { inside = 0 } !inside && /^\t/' Makefile | sed 's,in-root .*,in-root,' >"$OUT/recipes"
# shellcheck disable=SC2086
check_eq "each script that they begin with is read" "" "$(grep -oE '(images|scenarios|tests)/[a-z0-9/-]+' "$OUT/recipes" | sort -u |
	grep -vxF -f "$OUT/entering" | grep -vxF "$(printf '%s\n' $outside)")"
check_eq "... but those of a machine with a GPU" "bench-gpu check-gpu" "$(sed -n 's/.*(MAKE) -C userlib \([a-z-]*\).*/\1/p' "$OUT/recipes" | sort | xargs)"
# The recipes of HOST_GOALS are lines of sh, too; a word stands for what make expands in them
awk '/^\t/ { sub(/^\t[+@-]*/, ""); gsub(/\$\$/, "\001"); while (gsub(/\$\([^()]*\)/, "MAKE")); gsub("\001", "$"); print }' Makefile >"$OUT/heads/Makefile"
awk '!/^#/ && NF { print $1 }' images/build/host-tools.list >"$OUT/listed"
# What stands where no command stands: apt-get behind a function, xz in an option of tar; and busybox is the root's own
{
	# shellcheck disable=SC2086
	called "scenarios/lib/machine/topology.sh scenarios/lib/machine/watch.sh" $outside "$OUT"/heads/* | grep -vx /bin/busybox
	# shellcheck disable=SC2086
	grep -ohE '_apt ("[^"]*" )?apt-get |tar -xJ' $outside | sed 's/.*apt-get .*/apt-get/; s/.*-xJ/xz/' | sort -u
} >"$OUT/host"
check_eq "host-tools.list has what they call" "" "$(grep -vxF -f "$OUT/listed" "$OUT/host")"
check_eq "and nothing else" "" "$(grep -vxF -f "$OUT/host" "$OUT/listed")"
check_eq "all of this is shell" "" "$(cat "$OUT/unread")"

# these can fail
cat >"$OUT/bad.sh" <<'END'
# rm is a comment, and awk's program none
own() { case $1 in a | b) first "$(second 'third' | xargs -r fourth)" ;; *) x=$(($(fifth) + 1)) sixth ;; esac; }
own "seventh $(eighth) `ninth`" <<-EOF | tenth
	nothing | here, but $(fourteenth)
	EOF
check "none" thirteenth; command -v none || exec timeout 5 sh -c 'eleventh; awk "{ print twelfth }"'
env -u NONE A="$b" timeout -s KILL "$none" fifteenth; trap "sh -ec 'sixteenth \"\$none\"'" EXIT; find none -exec seventeenth {} +
END
check_eq "programs are found where they stand" "awk eighth eleventh env fifteenth fifth find first fourteenth fourth ninth second seventeenth sh sixteenth sixth tenth thirteenth timeout xargs" \
	"$(called scenarios/lib/case.sh "$OUT/bad.sh" | xargs)"
echo 'if true' >"$OUT/bad.sh"
check_eq "nothing is found in what is no shell" "" "$(called "" "$OUT/bad.sh")"
check "... and that is told" grep -q "^$OUT/bad.sh:" "$OUT/unread"
finish
