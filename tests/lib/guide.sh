# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# Follows a guide to the letter; sourced after case.sh.

# guide_tree: a copy of the checkout in tree/, with what is built
guide_tree() {
	mkdir -p tree/build
	for guide_each in docs images scenarios tests userlib versions.mk; do
		cp -Rp "$TOP/$guide_each" tree/ || exit 1
	done
	for guide_each in "$BUILD"/*; do
		case ${guide_each##*/} in
		out | tests | scenarios) ;;
		*) ln -s "$guide_each" tree/build/ ;;
		esac
	done
	[ ! -e "$BUILD/scenarios" ] || cp -Rp "$BUILD/scenarios" tree/build/
}

# guide_steps PAGE N: each of its N blocks of sh is a step that works; what they printed is in step1.said and
# so on, and that of the last one in said
guide_steps() {
	awk '/^```sh$/ { file = "step" ++n; next } /^```$/ { file = ""; next } file { print >file }' "$TOP/docs/how-to/$1"
	check_eq "$1 has its steps" "$2" "$(find . -maxdepth 1 -name 'step*' | wc -l)"
	for guide_step in step[0-9] step[0-9][0-9]; do
		[ -e "$guide_step" ] || continue
		(cd tree && env -u BUILD -u OUT -u TOP -u TIER sh -e "../$guide_step") >said 2>&1
		check_eq "$guide_step: each command works" 0 $?
		cp said "$guide_step.said"
		sed 's/^/#   /' said | tail -n 30
	done
}
