#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: kernel code passes checkpatch, the device models QEMU's own
# tags: static
# tier: all
# timeout: 400
. "$TOP/scenarios/lib/case.sh"

# QEMU's source has both scripts: its own, and Linux's in the copy of U-Boot
for tree in "${PEERLANE_CACHE:?}"/qemu-tree-*/orig; do
	linux=$tree/roms/u-boot/scripts/checkpatch.pl
	qemu=$tree/scripts/checkpatch.pl
done
if [ ! -e "$linux" ] || [ ! -e "$qemu" ]; then
	skip "the cache has no source of QEMU (its binary came from elsewhere)"
fi

# shellcheck disable=SC2317 # called through check
kernel_style() { # CHECKOUT
	make -C "$1/kernel" O="$OUT/build" checkpatch CHECKPATCH="$TOP/tests/static/checkpatch $linux"
}
# shellcheck disable=SC2317
qemu_style() { # FILE…
	(cd "$tree" && "$TOP/tests/static/checkpatch" "$qemu" --no-tree --terse --no-summary -f "$@")
}
# shellcheck disable=SC2317
patch_style() {
	(cd "$tree" && "$TOP/tests/static/checkpatch" "$qemu" --no-tree --no-signoff --terse --no-summary "$@")
}
check "kernel/: checkpatch --strict" kernel_style "$TOP"
check "hw-model/: QEMU's checkpatch" qemu_style "$TOP"/hw-model/peerlane/*.c \
	"$TOP"/hw-model/peerlane/*.h
wire_style() { # FILE…
	"$TOP/tests/static/checkpatch" "$linux" --no-tree --strict --terse --no-summary --ignore \
		FILE_PATH_CHANGES,SPDX_LICENSE_TAG,PREFER_KERNEL_TYPES,VOLATILE,ARRAY_SIZE,EMBEDDED_FUNCTION_NAME,LONG_LINE_STRING,SPLIT_STRING \
		-f "$@"
}
check "hw-model/wire/: checkpatch, without what only the kernel has" wire_style \
	"$TOP"/hw-model/wire/*.[ch]
check "patches to QEMU: QEMU's checkpatch" patch_style "$TOP"/hw-model/patches/*.patch

# The checks can fail
check_fails "no file of that name is an error" "there is no file /no/such" wire_style "/no/such*.c"
check_fails "and so is no file" "no files" wire_style
for file in kernel/Makefile kernel/peerlane_gpu/main.c hw-model/peerlane/peerlane-gpu.c hw-model/wire/port.c; do
	mkdir -p "bad/${file%/*}" && cp "$TOP/$file" "bad/$file"
done
printf '\nint bad( void ) {\n  return 1 ;\n}\n' >>bad/kernel/peerlane_gpu/main.c
printf '\nint bad( void ) {\n\treturn 1 ;\n}\n' >>bad/hw-model/peerlane/peerlane-gpu.c
printf '\nint bad( void ) {\n  return 1 ;\n}\n' >>bad/hw-model/wire/port.c
check_fails "bad style in hw-model/wire/ is seen" "port.c:[0-9]+: ERROR:.*prohibited" wire_style bad/hw-model/wire/port.c
check_fails "bad style in kernel/ is seen" "main.c:[0-9]+: ERROR:.*prohibited" kernel_style "$OUT/bad"
check_fails "bad style in hw-model/ is seen" "peerlane-gpu.c:[0-9]+: ERROR:.*prohibited" qemu_style \
	"$OUT/bad/hw-model/peerlane/peerlane-gpu.c"
check_fails "... and seen again: only a pass is kept" "peerlane-gpu.c:[0-9]+: ERROR:.*prohibited" qemu_style \
	"$OUT/bad/hw-model/peerlane/peerlane-gpu.c"
finish
