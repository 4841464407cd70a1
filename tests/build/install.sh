#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: make install brings what a program needs, and make uninstall takes it away, and nothing else
# tier: check
# timeout: 300

. "$TOP/scenarios/lib/case.sh"
need_tool make
need_tool flock
need_tool pkgconf

install() { # GOAL: below $OUT/dest
	flock "$BUILD/userlib/tests.lock" make -s -C "$TOP" "$1" DESTDIR="$OUT/dest" prefix=/opt/peerlane >>"$OUT/install.log" 2>&1
}

mkdir -p dest/opt/peerlane/include/peerlane
echo mine >dest/opt/peerlane/include/peerlane/mine.h
check "make install" install install || diag "$(tail -n 5 install.log)"
root=$OUT/dest/opt/peerlane
for page in "$BUILD"/userlib/man/*.[1-8]; do
	installed=$root/share/man/man${page##*.}/${page##*/}
	cmp -s "$page" "$installed" || echo "${page##*/}"
done >lost
check_eq "every manual page is there" "" "$(cat lost)"
for header in "$TOP"/userlib/include/peerlane/*.h; do
	cmp -s "$header" "$root/include/peerlane/${header##*/}" || echo "${header##*/}"
done >lost
for cuda in cuda-12 cuda-13; do
	check "the static runtime of $cuda is there" test -s "$root/lib/peerlane/$cuda/libcudart_static.a"
done
check_eq "every header is there" "" "$(cat lost)"
check_eq "nothing that stands in for NVIDIA's driver is" "" \
	"$(find dest -name 'libcuda.so*' -o -name 'libnvidia-ml.so*' -o -name nvidia-smi)"
check_eq "nothing is outside of prefix" opt "$(ls dest)"
check_eq "nothing names the folder in which it was built" "" \
	"$(grep -rlI -e "$BUILD" -e "$OUT" dest)"

# a program finds it all by pkg-config, and runs
cat >program.c <<'END'
#include <peerlane/peerlane.h>
#include <stdio.h>
int main(void)
{
	printf("%s\n", pln_strerror(0) ? "runs" : "");
	return 0;
}
END
flags() { # OPTION… PACKAGE
	PKG_CONFIG_PATH=$root/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$OUT/dest pkgconf --cflags --libs "$@"
}
# shellcheck disable=SC2046 # a list
check "a program is compiled with what was installed" cc -o program program.c $(flags libpeerlane)
check_eq "and runs" runs "$(LD_LIBRARY_PATH=$root/lib ./program)"

# one of cuFile too, built for NVIDIA's header without a change
cat >cufile.c <<'END'
#include <cufile.h>
#include <stdio.h>
int main(void)
{
	CUfileBatchHandle_t batch;
	int version = 0;

	printf("%d %d\n", cuFileGetVersion(&version).err || version < 1160, cuFileBatchIOSetUp(&batch, 0).err > 0);
	return 0;
}
END
# shellcheck disable=SC2046 # a list
check "a program is compiled with <cufile.h> and -lcufile" cc -D_GNU_SOURCE -o cufile cufile.c $(flags cufile)
check_eq "and runs" "0 1" "$(LD_LIBRARY_PATH=$root/lib ./cufile)"

# the same with the library in it, and a program with everything that there is
sed -n 's/^\t\(pln_.*\);/\1/p' "$TOP/userlib/core/libpeerlane.map" >names
{
	printf '#include <stdio.h>\n'
	sed 's/.*/extern char &[];/' names
	printf 'int main(void)\n{\n\tconst void *all[] = {\n'
	sed 's/.*/\t\t&,/' names
	printf '\t};\n\tputs(all[0] ? "runs" : "");\n\treturn 0;\n}\n'
} >all.c
for each in program all; do
	# shellcheck disable=SC2046 # a list
	check "$each.c is linked statically" \
		cc -static -o "$each.static" "$each.c" $(flags --static libpeerlane)
	check_eq "$each.c runs alone" runs "$(./"$each.static")"
done
check_eq "the static library has the shared one's names, and no others" \
	"$(sort names)" "$(nm -g --defined-only "$root/lib/libpeerlane.a" | awk 'NF == 3 { print $3 }' | sort)"
check "so does the tool" env LD_LIBRARY_PATH="$root/lib" "$root/bin/peerlane" --help
check "completion is where bash looks" grep -q '^complete -F _peerlane peerlane' \
	"$root/share/bash-completion/completions/peerlane"

check "make uninstall" install uninstall || diag "$(tail -n 5 install.log)"
check_eq "what others have put there stays, and nothing else" \
	"dest/opt/peerlane/include/peerlane/mine.h" "$(find dest ! -type d)"
check_false "a folder that was ours alone is gone" test -e "$root/include/peerlane-cuda"
check "to uninstall what is not there is no mistake" install uninstall
finish
