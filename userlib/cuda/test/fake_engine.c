// SPDX-License-Identifier: MIT
/* The engine of the GPU in the process: what a job may do, and doing it */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fake_engine.h"
#include "fake_gpu.h"

static unsigned int bad_jobs;
static int bad_status;
static uint32_t bad_code;

void fake_bad_jobs(unsigned int n, int status, uint32_t code)
{
	bad_jobs = n;
	bad_status = status;
	bad_code = code;
}

struct fhandle *fake_handle(struct ffile *f, uint32_t handle)
{
	if (!handle || handle > MAX_HANDLES || !f->handle[handle - 1].used)
		return NULL;
	return &f->handle[handle - 1];
}

static bool user_ok(uint64_t addr, uint64_t len)
{
	uint64_t end = addr + len;
	char byte;

	for (uint64_t at = addr; at < end; at = (at | 4095) + 1) {
		struct iovec to = { &byte, 1 };
		struct iovec from = { (void *)(uintptr_t)at, 1 };

		if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != 1 &&
		    errno == EFAULT)
			return false;
	}
	return end >= addr;
}

static int check_side(struct ffile *f, const struct pln_gpu_op *op,
		      uint32_t user, uint32_t handle, uint64_t at)
{
	struct fhandle *h;

	if (op->flags & user) {
		if (handle || op->opcode != PLN_GPU_OP_COPY)
			return EINVAL;
		return user_ok(at, op->len) ? 0 : EFAULT;
	}
	h = fake_handle(f, handle);
	if (!h)
		return ENOENT;
	return at <= h->size && op->len <= h->size - at ? 0 : EINVAL;
}

int fake_check_op(struct ffile *f, const struct pln_gpu_op *op)
{
	bool src = op->opcode != PLN_GPU_OP_FILL;
	bool dst = op->opcode != PLN_GPU_OP_CRC32C;
	int err;

	if (op->opcode == PLN_GPU_OP_NOP)
		return 0;
	if (op->opcode > PLN_GPU_OP_ADD || op->reserved || !op->len ||
	    op->len > 1ull << 32 ||
	    op->flags == (PLN_GPU_OP_F_SRC_USER | PLN_GPU_OP_F_DST_USER))
		return EINVAL;
	if (op->opcode == PLN_GPU_OP_FILL &&
	    (!op->arg || op->len % op->arg || op->dst % op->arg))
		return EINVAL;
	if (op->opcode == PLN_GPU_OP_ADD && (op->arg < 1 || op->arg > 2))
		return EINVAL;
	if (op->opcode != PLN_GPU_OP_FILL && op->opcode != PLN_GPU_OP_ADD &&
	    op->arg)
		return EINVAL;
	err = src ? check_side(f, op, PLN_GPU_OP_F_SRC_USER, op->src_handle,
			       op->src) : 0;
	if (!err && dst)
		err = check_side(f, op, PLN_GPU_OP_F_DST_USER, op->dst_handle,
				 op->dst);
	return err;
}

static uint32_t crc32c(uint32_t crc, const uint8_t *p, uint64_t n)
{
	crc = ~crc;
	while (n--) {
		crc ^= *p++;
		for (int i = 0; i < 8; i++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return ~crc;
}

static uint8_t *operand(struct ffile *f, uint32_t flags, uint32_t user,
			uint32_t handle, uint64_t at)
{
	if (flags & user)
		return (uint8_t *)(uintptr_t)at;
	return fake_gpus[f->gpu].vram + f->handle[handle - 1].offset + at;
}

#ifdef __SANITIZE_THREAD__
/* A device writes to memory, whoever looks at it */
const char *__tsan_default_suppressions(void);

const char *__tsan_default_suppressions(void)
{
	return "race:run_op\n";
}
#endif

static void run_op(struct ffile *f, const struct pln_gpu_op *op,
		   uint64_t *result)
{
	uint8_t *src = NULL, *dst = NULL;

	if (op->opcode == PLN_GPU_OP_NOP)
		return;
	if (op->src_handle || (op->flags & PLN_GPU_OP_F_SRC_USER))
		src = operand(f, op->flags, PLN_GPU_OP_F_SRC_USER,
			      op->src_handle, op->src);
	if (op->dst_handle || (op->flags & PLN_GPU_OP_F_DST_USER))
		dst = operand(f, op->flags, PLN_GPU_OP_F_DST_USER,
			      op->dst_handle, op->dst);
	switch (op->opcode) {
	case PLN_GPU_OP_COPY:
		memmove(dst, src, op->len);
		break;
	case PLN_GPU_OP_FILL:
		for (uint64_t i = 0; i < op->len; i += op->arg)
			memcpy(dst + i, &op->imm, op->arg);
		break;
	case PLN_GPU_OP_CRC32C:
		*result = crc32c((uint32_t)op->imm, src, op->len);
		break;
	case PLN_GPU_OP_COMPARE:
		*result = PLN_GPU_COMPARE_EQUAL;
		for (uint64_t i = 0; i < op->len; i++) {
			if (src[i] != dst[i]) {
				*result = i;
				break;
			}
		}
		break;
	case PLN_GPU_OP_ADD:
		for (uint64_t i = 0; i < op->len; i += 4) {
			uint32_t a, b;
			float x, y;

			memcpy(&a, dst + i, 4);
			memcpy(&b, src + i, 4);
			memcpy(&x, dst + i, 4);
			memcpy(&y, src + i, 4);
			a += b;
			x += y;
			memcpy(dst + i, op->arg == PLN_GPU_ADD_INT32 ?
			       (void *)&a : (void *)&x, 4);
		}
		break;
	}
}

void fake_run_job(struct ffile *f, struct fjob *job)
{
	struct fgpu *gpu = &fake_gpus[f->gpu];

	if (job->done)
		return;
	if (gpu->late)
		gpu->vram[gpu->late_at] = gpu->late_byte;
	gpu->late = false;
	job->done = true;
	pthread_cond_broadcast(&fake_ran);
	if (fake_gpus[f->gpu].reset_count != f->reset_count ||
	    fake_gpus[f->gpu].removed) {
		job->status = -EIO;
		return;
	}
	if (bad_jobs) {
		bad_jobs--;
		job->status = bad_status;
		job->error = bad_code;
		return;
	}
	for (unsigned int i = 0; i < job->nr; i++)
		run_op(f, &job->ops[i], &job->result);
	job->time = fake_time();
}
