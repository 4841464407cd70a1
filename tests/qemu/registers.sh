#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: QEMU's functions do not clear registers before they return: that is a quarter of a guest's time
# tags: qemu
# tier: check
# timeout: 60
. "$TOP/scenarios/lib/case.sh"
need_tool objdump cc
need_file "$BUILD/qemu/qemu-system-x86_64"

# returns FILE: how many functions end in the code of FILE, and how many of them have cleared a register that is no result
returns() {
	objdump -d -j .text --no-show-raw-insn "$1" | awk '
	$2 == "ret" { all++; cleared += last ~ /xor +%(ecx|esi|edi|r[89]d),%(ecx|esi|edi|r[89]d)/ }
	{ last = $0 }
	END { print all + 0, cleared + 0 }'
}

cat >clears.c <<'END_C'
int f(int *a, int b, int c) { return a[b] + b * c + (a[c] ^ b); }
END_C
cc -O2 -fcf-protection=none -fzero-call-used-regs=used-gpr -c clears.c
check_eq "a function that clears them is seen" "1 1" "$(returns clears.o)"
returns "$BUILD/qemu/qemu-system-x86_64" >qemu
read -r all cleared <qemu
check "QEMU has functions ($all returns)" test "$all" -gt 10000
check_eq "none of them clears any" 0 "$cleared"
finish
