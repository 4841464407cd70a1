/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Peerlane GPU: register and descriptor layout.
 *
 * The specification is hw-model/docs/peerlane-gpu.rst; this header holds its
 * numbers, once, for the device model and for the driver.  It includes
 * nothing, so that both can use it.  All registers are little endian.
 */
#ifndef PEERLANE_GPU_REGS_H
#define PEERLANE_GPU_REGS_H

/* PCI identity; vendor and device are properties of the model */
#define PLN_PCI_VENDOR_ID               0x1234
#define PLN_PCI_DEVICE_ID               0x9e71
#define PLN_PCI_CLASS                   0x0302  /* display, 3D controller */

/* BARs, numbered as in the configuration space */
#define PLN_BAR_REGS                    0       /* 32 bit, 64 KiB */
#define PLN_BAR_APERTURE                1       /* 64 bit, "BAR1" */
#define PLN_BAR_COHERENT                3       /* 64 bit, may be absent */

#define PLN_REGS_SIZE                   0x10000
#define PLN_MSIX_TABLE                  0x8000  /* in PLN_BAR_REGS */
#define PLN_MSIX_PBA                    0xc000
#define PLN_MSIX_VECTORS                17      /* 0: device, 1 + q: queue q */

/* Identification */
#define PLN_REG_ID                      0x0000  /* RO */
#define   PLN_ID_VALUE                  0x504c4e47      /* "PLNG" */
#define PLN_REG_VERSION                 0x0004  /* RO, major << 16 | minor */
#define   PLN_VERSION_VALUE             0x00010000
#define PLN_REG_FEATURES                0x0008  /* RO */
#define   PLN_FEAT_COHERENT             (1u << 0)
#define   PLN_FEAT_DMA_COUNTERS         (1u << 1)       /* of peers' DMA */
#define   PLN_FEAT_LATE_WRITES          (1u << 2)       /* BAR1_FLUSH needed */
#define   PLN_FEAT_TIME                 (1u << 3)       /* TIME, PLN_DESC_F_TIME */
#define PLN_REG_STATUS                  0x000c  /* RO */
#define   PLN_STATUS_READY              (1u << 0)
#define   PLN_STATUS_QUEUE_ERROR        (1u << 1)       /* some queue halted */
#define PLN_REG_VRAM_SIZE               0x0010  /* RO, 64 bit, bytes */
#define PLN_REG_BAR1_SIZE               0x0018  /* RO, 64 bit, bytes */
#define PLN_REG_COHERENT_SIZE           0x0020  /* RO, 64 bit, 0: absent */
#define PLN_REG_BAR1_UNIT               0x0028  /* RO, bytes */
#define   PLN_BAR1_UNIT_SIZE            0x10000
#define PLN_REG_NUM_QUEUES              0x002c  /* RO */
#define   PLN_MAX_QUEUES                16
#define PLN_REG_UUID                    0x0030  /* RO, 16 bytes */
#define PLN_REG_SCRATCH                 0x0040  /* RW, no effect */
#define PLN_REG_RESET                   0x0044  /* WO */
#define   PLN_RESET_MAGIC               0x52535421      /* "RST!" */
#define PLN_REG_RESET_COUNT             0x0048  /* RO, resets since power on */
#define PLN_REG_TIME                    0x0050  /* RO, 64 bit, ns */

/* BAR1 mapping: write the arguments, then the command, then read the result */
#define PLN_REG_BAR1_INDEX              0x0100  /* RW, first unit of BAR1 */
#define PLN_REG_BAR1_COUNT              0x0104  /* RW, units */
#define PLN_REG_BAR1_VRAM               0x0108  /* RW, 64 bit, VRAM offset */
#define PLN_REG_BAR1_CMD                0x0110  /* WO */
#define   PLN_BAR1_CMD_MAP              1
#define   PLN_BAR1_CMD_UNMAP            2       /* exactly one mapped run */
#define   PLN_BAR1_CMD_UNMAP_ALL        3
#define PLN_REG_BAR1_RESULT             0x0114  /* RO, a PLN_ERR_* */
#define PLN_REG_BAR1_UNITS_USED         0x0118  /* RO */
#define PLN_REG_BAR1_RUNS_USED          0x011c  /* RO */
#define PLN_REG_BAR1_RUNS_MAX           0x0120  /* RO */
#define   PLN_BAR1_MAX_RUNS             1024
#define PLN_REG_BAR1_FLUSH              0x0124  /* WO, any value */

/*
 * Counters: RO, 64 bit, bytes or events since power on; neither reset clears
 * them.  A read of the low half latches the high half.
 */
#define PLN_REG_COUNTER(n)              (0x0200 + 8 * (n))
enum pln_counter {
    PLN_CNT_ENGINE_VRAM_READ,
    PLN_CNT_ENGINE_VRAM_WRITE,
    PLN_CNT_ENGINE_HOST_READ,   /* DMA to what is no PCI device's memory */
    PLN_CNT_ENGINE_HOST_WRITE,
    PLN_CNT_ENGINE_PEER_READ,   /* DMA to another PCI device's BAR */
    PLN_CNT_ENGINE_PEER_WRITE,
    PLN_CNT_BAR1_DMA_READ,      /* other devices' DMA, all initiators */
    PLN_CNT_BAR1_DMA_WRITE,
    PLN_CNT_COHERENT_DMA_READ,
    PLN_CNT_COHERENT_DMA_WRITE,
    PLN_CNT_BAR1_UNMAPPED,      /* accesses to BAR1 where nothing is mapped */
    PLN_CNT_DOORBELLS,
    PLN_CNT_DESCRIPTORS,
    PLN_CNT_ERRORS,
    PLN_CNT_INTERRUPTS,
    PLN_CNT_FAULTS_INJECTED,
    PLN_NUM_COUNTERS
};

/* Per-initiator counters of DMA into BAR1 and the coherent window: RO */
#define PLN_NUM_INITIATORS              16
#define PLN_REG_INITIATOR(n)            (0x0400 + 0x20 * (n))
#define   PLN_INITIATOR_ID              0x00    /* bus/devfn | VALID */
#define     PLN_INITIATOR_VALID         (1u << 31)
#define     PLN_INITIATOR_UNKNOWN       (1u << 30)      /* id not known */
#define   PLN_INITIATOR_READ            0x08    /* 64 bit, bytes */
#define   PLN_INITIATOR_WRITE           0x10    /* 64 bit, bytes */

/* Queues */
#define PLN_REG_QUEUE(q)                (0x1000 + 0x100 * (q))
#define   PLN_Q_CTRL                    0x00    /* RW */
#define     PLN_Q_CTRL_ENABLE           (1u << 0)
#define     PLN_Q_CTRL_RESET            (1u << 1)       /* reads as 0 */
#define   PLN_Q_STATUS                  0x04    /* RO */
#define     PLN_Q_DISABLED              0
#define     PLN_Q_IDLE                  1
#define     PLN_Q_RUNNING               2
#define     PLN_Q_ERROR                 3       /* until PLN_Q_CTRL_RESET */
#define   PLN_Q_BASE                    0x08    /* RW, 64 bit, DMA address */
#define   PLN_Q_SIZE                    0x10    /* RW, descriptors, 2^n */
#define     PLN_Q_SIZE_MIN              2
#define     PLN_Q_SIZE_MAX              4096
#define   PLN_Q_HEAD                    0x14    /* RO, next to execute */
#define   PLN_Q_TAIL                    0x18    /* RW, doorbell */
#define   PLN_Q_ERROR_CODE              0x1c    /* RO, a PLN_ERR_* */
#define   PLN_Q_ERROR_INDEX             0x20    /* RO, ring index */
#define   PLN_Q_VECTOR                  0x24    /* RW, MSI-X vector */
#define   PLN_Q_FENCE                   0x28    /* RO, 64 bit, last completed */

/*
 * Descriptor, 64 bytes.  Addresses are VRAM offsets, or DMA addresses where
 * the flag of that operand says so.
 */
#define PLN_DESC_SIZE                   64
#define PLN_DESC_OPCODE                 0x00    /* u32 */
#define PLN_DESC_FLAGS                  0x04    /* u32 */
#define PLN_DESC_ARG                    0x08    /* u32 */
#define PLN_DESC_RESERVED               0x0c    /* u32, 0 */
#define PLN_DESC_SRC                    0x10    /* u64 */
#define PLN_DESC_DST                    0x18    /* u64 */
#define PLN_DESC_LEN                    0x20    /* u64, bytes */
#define PLN_DESC_IMM                    0x28    /* u64 */
#define PLN_DESC_COMP                   0x30    /* u64, DMA address */
#define PLN_DESC_FENCE                  0x38    /* u64 */

#define PLN_OP_NOP                      0
#define PLN_OP_COPY                     1       /* dst = src */
#define PLN_OP_FILL                     2       /* dst = imm, arg: width */
#define PLN_OP_CRC32C                   3       /* of src; imm: CRC so far */
#define PLN_OP_COMPARE                  4       /* src with dst */
#define PLN_OP_ADD                      5       /* dst += src, arg: type */
#define PLN_OP_SEM_WRITE                6       /* *(u64 *)dst = imm */
#define PLN_OP_SEM_WAIT                 7       /* u64 *src >= imm, arg: us */
#define PLN_OP_IMM_WRITE                8       /* *dst = imm, arg: width */
#define PLN_NUM_OPS                     9

#define PLN_ADD_INT32                   1
#define PLN_ADD_FLOAT32                 2

#define PLN_DESC_F_SRC_BUS              (1u << 0)
#define PLN_DESC_F_DST_BUS              (1u << 1)
#define PLN_DESC_F_COMP                 (1u << 2)       /* write completion */
#define PLN_DESC_F_IRQ                  (1u << 3)       /* then interrupt */
#define PLN_DESC_F_TIME                 (1u << 4)       /* with COMP: its time */

#define PLN_MAX_LEN                     (1ull << 32)    /* of one descriptor */
#define PLN_SEM_MAX_WAIT_US             10000000u
#define PLN_COMPARE_EQUAL               0xffffffffffffffffull

/* Completion record, 32 bytes, 32-byte aligned; the fence is written last */
#define PLN_COMP_SIZE                   32
#define PLN_COMP_FENCE                  0x00    /* u64 */
#define PLN_COMP_STATUS                 0x08    /* u32, a PLN_ERR_* */
#define PLN_COMP_OPCODE                 0x0c    /* u32 */
#define PLN_COMP_RESULT                 0x10    /* u64, CRC or offset */
#define PLN_COMP_BYTES                  0x18    /* u64, bytes done; or: */
#define PLN_COMP_TIME                   0x18    /* u64, ns, PLN_DESC_F_TIME */

enum pln_gpu_error {
    PLN_ERR_NONE,
    PLN_ERR_OPCODE,             /* no such operation */
    PLN_ERR_FLAGS,              /* unknown, or not of this operation */
    PLN_ERR_RESERVED,           /* a reserved field is not 0 */
    PLN_ERR_ARG,                /* arg has no meaning for this operation */
    PLN_ERR_LENGTH,             /* 0, over PLN_MAX_LEN, no multiple of width */
    PLN_ERR_ALIGN,              /* an address is not aligned as needed */
    PLN_ERR_RANGE,              /* past the end of VRAM, of BAR1, or wraps */
    PLN_ERR_BUS,                /* a DMA read was refused */
    PLN_ERR_RING,               /* ring address, size, or descriptor fetch */
    PLN_ERR_TAIL,               /* tail is not inside the ring */
    PLN_ERR_TIMEOUT,            /* semaphore not seen in time */
    PLN_ERR_OVERLAP,            /* BAR1 units are already mapped */
    PLN_ERR_NOT_MAPPED,         /* no such run in BAR1 */
    PLN_ERR_NO_SPACE,           /* all PLN_BAR1_MAX_RUNS runs are in use */
    PLN_ERR_COMMAND,            /* no such BAR1 command */
    PLN_ERR_INJECTED,           /* fault injection */
    PLN_NUM_ERRORS
};

#endif /* PEERLANE_GPU_REGS_H */
