#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: kernel sources: licence lines, no cycle of files, layout of the user interface on 32 and 64 bits
# tags: kernel
# tier: check
# timeout: 120
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/calls.sh"
need_tool gcc nm tsort

missing=$(find "$TOP/kernel" -type f ! -path '*/build/*' | while read -r file; do
	head -n 3 "$file" | grep -q 'SPDX-License-Identifier: GPL-2.0-only' || echo "$file"
done)
check_eq "every file of kernel/ is GPL-2.0-only" "" "$missing"

for module in peerlane_gpu peerlane; do
	need_file "$BUILD/kernel/7.2/$module/main.o"
	for object in "$BUILD/kernel/7.2/$module"/*.o; do
		case ${object##*/} in
		"$module.o" | *.mod.o) ;;
		*) nm -A "$object" ;;
		esac
	done | calls >pairs
	check_no_cycle "$module"
done

# The fuzzer knows every call: one that is new has its arguments there
uapi=$TOP/kernel/include/uapi/linux
calls_of() { # FILE…: the names of the calls that headers define
	sed -n 's/^#define \(PLN_[A-Z_]*IOC_[A-Z0-9_]*\)[[:blank:]].*/\1/p' "$@" | grep -v '_IOC_MAGIC$' | sort
}
sed -n '/^static.*call_numbers\[/,/};/p' "$TOP/kernel/test/pln_fuzz.c" | grep -o 'PLN_[A-Z_]*IOC_[A-Z0-9_]*' | sort >fuzzed
check_eq "the fuzzer makes every call of the headers" "$(calls_of "$uapi"/*.h)" "$(cat fuzzed)"
{
	cat "$uapi/peerlane.h"
	printf '#define PLN_IOC_NEW2 \\\n\t_IOW(PLN_IOC_MAGIC, 0x45, struct pln_io)\n'
} >planted.h
check_eq "a new one would be missed" PLN_IOC_NEW2 "$(calls_of planted.h "$uapi/peerlane_gpu.h" | comm -23 - fuzzed)"
magic_of_linux() { # NUMBER: who calls so in Linux
	grep -rlsiE "(_IO[WR]*\(|IOC|MAGIC|BASE|TYPE).*\b$1\b" /usr/include/linux /usr/include/rdma /usr/include/drm /usr/include/sound \
		/usr/include/misc /usr/include/asm-generic
}
check_eq "both headers have one magic number" 0xd7 "$(sed -n 's/^#define PLN_[A-Z_]*IOC_MAGIC[[:blank:]]*\([^[:blank:]]*\).*/\1/p' "$uapi"/*.h | sort -u)"
check_eq "which is nobody's in Linux" "" "$(magic_of_linux 0xd7)"
check "rpmsg's would be found" sh -c "echo '$(magic_of_linux 0xb5)' | grep -q linux/rpmsg.h"

# The same sizes and offsets for both: the header alone, no C library
cat >"$OUT/layout.c" <<'END'
typedef unsigned char __u8;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
#include "layout.h"
#define SIZE(type, n) _Static_assert(sizeof(struct type) == (n), #type)
#define AT(type, field, n) \
	_Static_assert(__builtin_offsetof(struct type, field) == (n), #type "." #field)
SIZE(pln_gpu_query, 136);
AT(pln_gpu_query, features, 8);
AT(pln_gpu_query, page_size, 64);
AT(pln_gpu_query, uuid, 88);
AT(pln_gpu_query, time_ns, 104);
SIZE(pln_gpu_alloc, 32);
AT(pln_gpu_alloc, mmap_offset, 16);
SIZE(pln_gpu_free, 8);
SIZE(pln_gpu_export, 32);
AT(pln_gpu_export, fd, 24);
SIZE(pln_gpu_part, 24);
SIZE(pln_gpu_export_parts, 32);
AT(pln_gpu_export_parts, fd, 16);
SIZE(pln_gpu_op, 56);
AT(pln_gpu_op, src, 24);
AT(pln_gpu_op, imm, 48);
SIZE(pln_gpu_submit, 32);
AT(pln_gpu_submit, job, 24);
SIZE(pln_gpu_wait, 40);
AT(pln_gpu_wait, time_ns, 8);
AT(pln_gpu_wait, status, 24);
SIZE(pln_query, 64);
AT(pln_query, page_size, 32);
SIZE(pln_register, 32);
AT(pln_register, reason, 24);
SIZE(pln_unregister, 8);
SIZE(pln_check, 24);
AT(pln_check, reason, 16);
SIZE(pln_io, 72);
AT(pln_io, file_offset, 16);
AT(pln_io, reason, 48);
SIZE(pln_uring, 16);
END
cat "$TOP"/kernel/include/uapi/linux/peerlane*.h | grep -v '#include' >"$OUT/layout.h"
check "layout for 64-bit programs" gcc -m64 -Werror -ffreestanding -fsyntax-only "$OUT/layout.c"
check "layout for 32-bit programs" gcc -m32 -Werror -ffreestanding -fsyntax-only "$OUT/layout.c"
sed 's/SIZE(pln_gpu_op, 56)/SIZE(pln_gpu_op, 52)/' "$OUT/layout.c" >"$OUT/wrong.c"
check_fails "a wrong size is found" 'static assertion failed: "pln_gpu_op"' gcc -m32 -Werror -ffreestanding -fsyntax-only "$OUT/wrong.c"

# The interface for other drivers: as in NVIDIA's driver, on 64 bits
cat >"$OUT/p2p.c" <<'END'
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned long size_t;
#include "p2p.h"
#define SIZE(type, n) _Static_assert(sizeof(struct type) == (n), #type)
#define AT(type, field, n) \
	_Static_assert(__builtin_offsetof(struct type, field) == (n), #type "." #field)
SIZE(nvidia_p2p_params, 104);
SIZE(nvidia_p2p_page, 32);
SIZE(nvidia_p2p_page_table, 40);
AT(nvidia_p2p_page_table, pages, 8);
AT(nvidia_p2p_page_table, entries, 16);
AT(nvidia_p2p_page_table, gpu_uuid, 24);
AT(nvidia_p2p_page_table, flags, 32);
SIZE(nvidia_p2p_dma_mapping, 40);
AT(nvidia_p2p_dma_mapping, dma_addresses, 16);
AT(nvidia_p2p_dma_mapping, pci_dev, 32);
SIZE(nvidia_p2p_rsync_driver, 32);
SIZE(nvidia_p2p_rsync_reg, 40);
SIZE(nvidia_p2p_rsync_reg_info, 24);
END
grep -v '#include' "$TOP/kernel/include/linux/nv-p2p.h" >"$OUT/p2p.h"
check "layout of nvidia_p2p_*" gcc -m64 -Werror -ffreestanding -fsyntax-only "$OUT/p2p.c"
sed 's/gpu_uuid, 24/gpu_uuid, 20/' "$OUT/p2p.c" >"$OUT/wrong.c"
check_fails "a wrong offset is found" 'static assertion failed: "nvidia_p2p_page_table.gpu_uuid"' gcc -m64 -Werror -ffreestanding -fsyntax-only "$OUT/wrong.c"
finish
