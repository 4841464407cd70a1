# SPDX-License-Identifier: GPL-2.0-only
# Included by every Kbuild: flags, and what can only be learned from the tree.
# PLN_TOP is the checkout; kernel/Makefile sets it.
ccflags-y += -I$(PLN_TOP)/kernel/include -I$(PLN_TOP)/hw-model/peerlane
ccflags-y += -include $(PLN_TOP)/kernel/compat/compat.h
ccflags-y += -DPLN_MODULE_VERSION=\"$(PLN_VERSION)\"
ccflags-$(PLN_ANY_KERNEL) += -DPLN_ANY_KERNEL
ifneq ($(wildcard $(srctree)/include/linux/dma-buf-mapping.h),)
ccflags-y += -DPLN_HAVE_DMA_BUF_MAPPING
endif
# io_uring's commands, as they are told in the program's task since 7.0
ifneq ($(shell grep -s 'struct io_tw_req' $(srctree)/include/linux/io_uring/cmd.h),)
PLN_URING_CMD := $(CONFIG_IO_URING)
ccflags-$(PLN_URING_CMD) += -DPLN_HAVE_URING_CMD
endif
