# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# tree_files: the files of the source tree, relative to TOP, whether or not
# this is a git checkout.

tree_files() {
	(
		cd "$TOP" || exit 1
		if git -c safe.directory="$TOP" ls-files >/dev/null 2>&1; then
			git -c safe.directory="$TOP" ls-files -co --exclude-standard
		else
			find . -path ./build -prune -o -path ./.git -prune -o \
				-type f -print | sed 's|^\./||' |
				grep -vE '\.(o|ko|mod|mod\.c|cmd)$'
		fi | while IFS= read -r tree_file; do
			[ -f "$tree_file" ] && printf '%s\n' "$tree_file"
		done | LC_ALL=C sort
	)
}
