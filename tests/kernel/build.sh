#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the modules build for every kernel of the range without a warning of gcc (W=1) or sparse
# tags: kernel build
# tier: all
# timeout: 1800
. "$TOP/scenarios/lib/case.sh"
need_tool gcc make sparse

# shellcheck disable=SC2317 # called through check
make_check() { # CHECKOUT FOLDER [VARIABLE…]
	build_top=$1
	build_out=$2
	shift 2
	make -C "$build_top/kernel" O="$build_out" "$@" >"$OUT/make.log" 2>&1 && return
	cat "$OUT/make.log"
	return 1
}

# Three kernels take two minutes. So a pass is kept in the cache, and only a pass: an empty
# file, named by the hash of all that the verdict depends on: what is compiled, and the packages
# that are here, which have the tools and the kernels' headers. Of the emulated devices the
# modules include headers; the programs and documents beside them are no part of a module. The
# nightly tier looks again.
passed_before=${PEERLANE_CACHE:?}/kernel-check
mkdir -p "$passed_before"
find "$passed_before" -type f -mtime +30 -delete
key() { # CHECKOUT
	{
		dpkg-query -W
		cd "$1" && find kernel hw-model/peerlane -type f \( -name '*.h' -o -path 'kernel/*' \
			! -name '*.md' ! -path 'kernel/test/*.c' -o -path 'kernel/test/*/*' \) | LC_ALL=C sort | xargs sha256sum
	} | sha256sum | cut -d ' ' -f 1
}
key=$(key "$TOP")
for kver in 6.1 6.12 7.2; do
	passed=$passed_before/$key-$kver
	if [ -e "$passed" ] && [ "${TIER-}" != nightly ]; then
		touch "$passed"	# it is in use
		pass "Linux $kver: W=1, sparse (these sources have passed before)"
	elif make_check "$TOP" "$BUILD/kernel-check" "check-$kver" >"$OUT/complaints"; then
		: >"$passed"
		pass "Linux $kver: W=1, sparse"
	else
		fail "Linux $kver: W=1, sparse" "$(tail -n 60 "$OUT/complaints")"
	fi
done

litter=$(find "$TOP/kernel" \( -name '*.o' -o -name '*.ko' -o -name '*.mod*' -o -name '.*.cmd' -o -name Module.symvers \) | head -n 3)
check_eq "no object lies in the sources" "" "$litter"

# Ten more starts of the kernel's build show that the check can fail: at night
[ "${TIER-}" = nightly ] || finish

# One object of a copy shows it
mkdir -p "$OUT/bad/hw-model"
cp -R "$TOP/kernel" "$OUT/bad/kernel"
cp -R "$TOP/hw-model/peerlane" "$OUT/bad/hw-model/peerlane"
bad=$OUT/bad/kernel/peerlane_gpu/sysfs.c
check_eq "what has passed is known by its contents" "$key" "$(key "$OUT/bad")"
cp "$bad" "$OUT/sysfs.c"
check_one() {
	make_check "$OUT/bad" "$OUT/build-bad" check-7.2 OBJECT=peerlane_gpu/sysfs.o
}
check "one object passes" check_one
printf '\nint pln_bad(int __user *p);\nint pln_bad(int __user *p)\n{\n\treturn *p;\n}\n' >>"$bad"
check_false "other sources are other ones" test "$key" = "$(key "$OUT/bad")"
check_fails "a dereferenced user pointer fails it, by sparse" "dereference of noderef expression" check_one
check_fails "and again, though nothing has changed" "dereference of noderef expression" check_one
cp "$OUT/sysfs.c" "$bad"
check "without it, it passes" check_one
printf '\nint pln_bad(int a)\n{\n\treturn a;\n}\n' >>"$bad"
check_fails "a function without prototype fails it" "error: no previous prototype for .pln_bad" check_one
check_fails "and again, though nothing has changed" "error: no previous prototype for .pln_bad" check_one
cp "$OUT/sysfs.c" "$bad"
check_one
check "what has been checked" check_one
check_false "is not compiled again" grep -q 'CC .*sysfs.o' "$OUT/build-bad/check/7.2.log"
echo 'other tools' >>"$OUT/build-bad/check/7.2.clean"
check "with other tools" check_one
check "it is" grep -q 'CC .*sysfs.o' "$OUT/build-bad/check/7.2.log"

build_one() { # VARIABLE…
	make_check "$OUT/bad" "$OUT/build-range" KVER=7.2 "$@" object OBJECT=peerlane_gpu/sysfs.o
}
# Outside of the declared range: one clear line, and a way around
for edge in "MIN.KERNEL_VERSION(8, 0, 0)" "MAX.KERNEL_VERSION(6, 0, 0)"; do
	sed -i.orig "s/define PLN_KERNEL_${edge%%.*}.*/define PLN_KERNEL_${edge%%.*} ${edge#*.}/" "$OUT/bad/kernel/compat/compat.h"
	check_fails "outside of the range (${edge%%.*}) it does not build, and says what to do" \
		"error:.*supports Linux.*ANY_KERNEL=1" build_one
	mv "$OUT/bad/kernel/compat/compat.h.orig" "$OUT/bad/kernel/compat/compat.h"
done
sed -i.orig "s/define PLN_KERNEL_MAX.*/define PLN_KERNEL_MAX KERNEL_VERSION(6, 0, 0)/" "$OUT/bad/kernel/compat/compat.h"
check "ANY_KERNEL=1 builds all the same" build_one ANY_KERNEL=1

check_fails "no headers: it fails, and says what to install" "no headers of Linux 5\.0: install" \
	make_check "$TOP" "$OUT/build-none" KVER=5.0 modules
finish
