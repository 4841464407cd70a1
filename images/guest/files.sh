# SPDX-License-Identifier: MIT
# shellcheck shell=sh
# Files of the root on their way into a guest. Sourced inside the root.

# ldd_closure PROGRAM...: the libraries that they load, one path per line
ldd_closure() {
	ldd "$@" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// { print $3 } $1 ~ /^\// && $2 ~ /^\(/ { print $1 }' | sort -u
}

# into TREE FILE...: copies files (symbolic links followed) to the same path, as it is without the links of a merged /usr
into() {
	into_tree=$1
	shift
	for into_file; do
		case $into_file in
		/lib64/* | /usr/lib64/*) into_path=/lib64/${into_file##*/} ;;
		/lib/*) into_path=/usr$into_file ;;
		*) into_path=$into_file ;;
		esac
		mkdir -p "$into_tree${into_path%/*}"
		[ -e "$into_tree$into_path" ] || strip --strip-unneeded -o "$into_tree$into_path" "$into_file" 2>/dev/null ||
			cp -L "$into_file" "$into_tree$into_path"
		chmod 755 "$into_tree$into_path"
	done
}
