#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: shell scripts are POSIX sh and clean under shellcheck
# tags: quick static
# tier: check
# timeout: 300

. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/tree.sh"

need_tool shellcheck

tree_files | while IFS= read -r file; do
	case $file in
	*.sh | scenarios/*/run) echo "$file" ;;
	*) head -n 1 "$TOP/$file" | grep -q '^#!.*[/ ]sh$' && echo "$file" ;;
	esac
done >scripts
check "there are scripts to look at" test "$(wc -l <scripts)" -ge 10
cd "$TOP" || exit 1

# a few at a time, on all processors
# functions called by way of check are not unreachable (SC2317), and code in
# single quotes is for at_exit or for another shell (SC2016); functions of
# libraries may be called without arguments (SC2119)
if xargs -P "$(nproc)" -n 8 shellcheck -x -P SCRIPTDIR -s sh -e SC2317 -e SC2016 -e SC2119 <"$OUT/scripts" >"$OUT/shellcheck" 2>&1; then
	pass "shellcheck finds nothing in $(wc -l <"$OUT/scripts") scripts"
else
	fail "shellcheck finds nothing" "$(head -n 60 "$OUT/shellcheck")"
fi

xargs grep -nE '^[^#]*(\[\[ |<<<|\blocal |function [a-z_]+ *\{)' \
	<"$OUT/scripts" | grep -vE '^tests/static/shell.sh:' >"$OUT/bashisms"
if [ -s "$OUT/bashisms" ]; then
	fail "no bashisms" "$(cat "$OUT/bashisms")"
else
	pass "no bashisms"
fi

# the checks above can fail
cat >"$OUT/bad.sh" <<'END'
#!/bin/sh
rm -rf $1/*
END
check_fails "shellcheck is not asleep" SC2086 shellcheck -s sh "$OUT/bad.sh"
finish
