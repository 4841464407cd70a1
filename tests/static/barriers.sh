#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the models have a barrier where a host that reorders its accesses needs one, and touch VRAM by pointer in known places alone
# tags: static
# tier: check
# timeout: 60
#
# No test can see a missing one on a host that keeps the order. hw-model/docs says what it is for ("Order").

. "$TOP/scenarios/lib/case.sh"
models=$TOP/hw-model/peerlane

# bodies: lines "FILE FUNCTION LINE" of what is in functions
awk '
	FNR == 1 { file = FILENAME; sub(/.*\//, "", file); name = "" }
	/^[A-Za-z].*\(/ && !/;$/ { name = $0; sub(/\(.*/, "", name); sub(/.*[ *]/, "", name) }
	/^}/ { name = "" }
	name != "" && /^[ \t]/ { print file, name, $0 }' "$models"/*.c >bodies
check "there are functions" test "$(wc -l <bodies)" -ge 5000

# before FILE FUNCTION BARRIER EXPRESSION: the barrier stands between what comes before it and the line with EXPRESSION
before() {
	check "$2: $3 before $4" awk -v file="$1" -v name="$2" -v barrier="$3" -v expression="$4" '
		$1 != file || $2 != name { next }
		index($0, barrier "(") { seen = 1 }
		index($0, expression) && seen { found = 1 }
		END { exit !found }' bodies
}
# what tells that something is there is written last
before peerlane-gpu-engine.c pln_write_completion smp_wmb "rec + PLN_COMP_FENCE, 8"
before peerlane-gpu-ops.c pln_do_write smp_wmb "stn_le_p(pln_vram("
before peerlane-gpu-ops.c pln_do_write smp_wmb "pln_bus_rw("
before peerlane-gpu-late.c pln_late_store smp_wmb "stn_le_p("
before peerlane-cx-cq.c plc_cq_put smp_wmb "at + CX_CQE_SIZE - 4"
before peerlane-cx-eq.c plc_eq_post smp_wmb "at + CX_EQE_SIZE - 4"
before peerlane-cx-cmd.c plc_cmd_run smp_wmb "at + CX_SLOT_STATUS"
# what tells that something is there is read first
before peerlane-gpu-ops.c pln_do_sem_wait smp_mb_acquire "w->result >= d->imm"
before peerlane-cx-rc.c plc_dbr smp_rmb "return"
before peerlane-cx-srq.c plc_srq_posted smp_rmb "posted ="
before peerlane-cx-eth.c plc_queue_posted smp_rmb "*posted ="
# one of two that change and look sees the other's change
before peerlane-cx-net.c plc_net_slice_ends smp_mb "rx_blocked"
before peerlane-cx-cq.c plc_cq_room smp_mb_acquire "cq->ci ="

# DMA goes by QEMU's dma_memory_rw(), which has a barrier in front of each access, or by a way that has the same one
before peerlane-account.c pla_dma_ram dma_barrier "address_space_rw_ram("
check_eq "DMA has two ways" "peerlane-account.c pla_dma_piece
peerlane-account.c pla_dma_ram" \
	"$(grep -E '(pci_dma_|dma_memory_|ld[a-z_]*_pci_dma|st[a-z_]*_pci_dma|address_space_(rw|read|write|map|ld|st))[a-z_]*\(' bodies | awk '{ print $1, $2 }' | sort -u)"
# VRAM by pointer: peerlane-gpu-ops.c in one function, whose callers write what is seen at once by pln_do_write() alone
check_eq "VRAM is touched by pointer in known places" "peerlane-gpu-bar1.c peerlane-gpu-late.c peerlane-gpu-ops.c" \
	"$(grep -F vram_ptr bodies | awk '{ print $1 }' | sort -u | xargs)"
finish
