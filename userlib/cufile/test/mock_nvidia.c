// SPDX-License-Identifier: MIT
/*
 * Of the mock: /dev/nvidiactl and /dev/nvidia-uvm, for who maps memory through them.
 * They refuse what the real ones refuse, in the same order: uvm_api_alloc_device_p2p()
 * in kernel-open/nvidia-uvm/uvm_va_range_device_p2p.c, uvm_mmap() in uvm.c,
 * uvm_free() in uvm_va_range.c, and RM's import in
 * src/nvidia/arch/nvalloc/unix/src/os.c of NVIDIA's open kernel modules.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../nvrm.h"
#include "mock.h"

#define PAGE		4096
#define MAX		4096
#define CLIENT		0xc1d00001u
#define FIRST		0x5c000001u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct file {
	enum { OTHER, CTL, UVM, EXPORT } kind;
	bool initialized, registered;	/* of UVM */
	/* of EXPORT */
	uint64_t id;
	size_t size;
} files[MAX];

static struct object {
	nvrm_handle parent;
	uint32_t class;		/* 0: none; memory: 0x40 */
	uint64_t id;
	size_t size;
	int backing;
} objects[MAX];
static nvrm_handle client;	/* of whom; 0: nobody */

static struct range {
	uint64_t base, size, offset, id;
	int backing;
	bool external;
} ranges[MAX];

static bool is_gpu(const uint8_t *uuid)
{
	unsigned int i;

	for (i = 0; i < 16 && uuid[i] == MOCK_UUID; i++)
		continue;
	return i == 16;
}

static struct file *file_of(int fd)
{
	return fd >= 0 && fd < MAX ? &files[fd] : NULL;
}

int mock_nv_open(const char *path)
{
	int kind = !strcmp(path, "/dev/nvidiactl") ? CTL :
		   !strcmp(path, "/dev/nvidia-uvm") ? UVM : OTHER, fd;

	if (kind == OTHER)
		return -2;
	mock.nv_opened++;
	if (!mock.nvidia || (kind == UVM && mock.nv_no_uvm)) {
		errno = mock.nvidia ? mock.nv_no_uvm : ENOENT;
		return -1;
	}
	fd = memfd_create("mock-nvidia", MFD_CLOEXEC);
	if (fd < 0 || fd >= MAX)
		abort();
	mock.nv_open++;
	pthread_mutex_lock(&lock);
	files[fd] = (struct file){ .kind = (unsigned int)kind };
	pthread_mutex_unlock(&lock);
	return fd;
}

/* Both are of one open(), of which nothing was asked yet */
void mock_nv_copied(int fd, int to)
{
	struct file *f = file_of(fd), *copy = file_of(to);

	if (!f || (f->kind != CTL && f->kind != UVM))
		return;
	if (!copy || f->initialized)
		abort();
	mock.nv_open++;
	*copy = *f;
}

void mock_nv_export(int fd, uint64_t id, size_t size)
{
	files[fd] = (struct file){ .kind = EXPORT, .id = id, .size = size };
}

/* With the lock held. */
static void forget_object(struct object *o)
{
	if (o->class == 0x40) {
		close(o->backing);
		mock.nv_memory--;
	}
	o->class = 0;
}

static void forget_range(struct range *r)
{
	if (!r->external) {
		close(r->backing);
		mock.nv_lent--;
	}
	r->size = 0;
}

void mock_nv_close(int fd)
{
	struct file *f = file_of(fd);
	unsigned int i;
	int kind = f ? (int)f->kind : OTHER;

	if (kind == OTHER)
		return;
	f->kind = OTHER;
	if (kind == EXPORT)
		return;
	pthread_mutex_lock(&lock);
	mock.nv_open--;
	for (i = 0; i < MAX; i++) {
		if (kind == CTL)
			forget_object(&objects[i]);
		if (kind == UVM && ranges[i].size)
			forget_range(&ranges[i]);
	}
	if (kind == CTL)
		client = 0;
	pthread_mutex_unlock(&lock);
}

static struct object *object_of(nvrm_handle h)
{
	return h >= FIRST && h < FIRST + MAX && objects[h - FIRST].class ?
	       &objects[h - FIRST] : NULL;
}

static struct object *new_object(nvrm_handle parent, uint32_t class,
				 nvrm_handle *h)
{
	/* a handle is not used again soon */
	static unsigned int next;
	unsigned int i;

	for (i = 0; i < MAX && objects[next % MAX].class; i++)
		next++;
	if (objects[next % MAX].class)
		abort();
	*h = FIRST + next % MAX;
	objects[next % MAX] = (struct object){ .parent = parent,
					       .class = class };
	return &objects[next++ % MAX];
}

static uint32_t alloc(struct nvrm_alloc *a)
{
	struct nvrm_device *d = (void *)(uintptr_t)a->params;
	struct object *parent = object_of(a->parent);

	if (a->class == NVRM_CLASS_CLIENT) {
		a->object = client = CLIENT;
		return 0;
	}
	if (!client || a->client != client)
		return NVRM_INVALID_CLIENT;
	switch (a->class) {
	case NVRM_CLASS_DEVICE:
		if (a->params_size != sizeof(*d))
			return NVRM_INVALID_PARAM_STRUCT;
		if (a->parent != client)
			return NVRM_INVALID_OBJECT_PARENT;
		if (d->instance)
			return NVRM_INVALID_ARGUMENT;
		break;
	case NVRM_CLASS_SUBDEVICE:
	case 0x90f1:
		if (!parent || parent->class != NVRM_CLASS_DEVICE)
			return NVRM_INVALID_OBJECT_PARENT;
		break;
	default:
		return NVRM_INVALID_CLASS;
	}
	new_object(a->parent, a->class, &a->object);
	return 0;
}

static uint32_t import(struct nvrm_import *im)
{
	struct file *f = file_of(im->fd);
	struct object *o;

	if (!f || f->kind != EXPORT || im->count > 128)
		return NVRM_INVALID_PARAMETER;
	if (im->first + im->count > 1)
		return NVRM_OUT_OF_RANGE;
	o = object_of(im->parent);
	if (!o || o->class != NVRM_CLASS_DEVICE)
		return NVRM_INVALID_OBJECT_PARENT;
	o = new_object(im->parent, 0x40, &im->objects[0]);
	o->id = f->id;
	o->size = f->size;
	o->backing = fcntl(im->fd, F_DUPFD_CLOEXEC, 3);
	if (o->backing < 0)
		abort();
	mock.nv_memory++;
	im->types[0] = mock.nv_type;
	return 0;
}

static uint32_t control(struct nvrm_control *c)
{
	struct object *o = object_of(c->object);
	void *p = (void *)(uintptr_t)c->params;
	struct nvrm_export_info *info = p;
	struct nvrm_static_bar1 *bar1 = p;
	struct file *f;

	if (!client || c->client != client)
		return NVRM_INVALID_CLIENT;
	if (c->object != client && !o)
		return NVRM_OBJECT_NOT_FOUND;
	switch (c->cmd) {
	case NVRM_EXPORT_INFO:
		if (c->params_size != sizeof(*info))
			return NVRM_INVALID_PARAM_STRUCT;
		f = file_of(info->fd);
		if (!f || f->kind != EXPORT)
			return NVRM_INVALID_PARAMETER;
		info->device_instance = 0;
		info->gpu_instance = mock.nv_mig ? 3 : NVRM_NO_MIG;
		info->max_objects = 1;
		return 0;
	case NVRM_IMPORT:
		return c->params_size != sizeof(struct nvrm_import) ?
		       NVRM_INVALID_PARAM_STRUCT : import(p);
	case NVRM_STATIC_BAR1:
		if (c->params_size != sizeof(*bar1))
			return NVRM_INVALID_PARAM_STRUCT;
		if (!o || o->class != NVRM_CLASS_SUBDEVICE)
			return NVRM_INVALID_OBJECT;
		bar1->enabled = !mock.nv_no_static;
		/* not told before 580 */
		bar1->write_combined = mock.nv_write_combined &&
				       atoi(mock.nvidia) >= 580;
		bar1->start = 0;
		bar1->size = mock.nv_no_static ? 0 : 1ull << 36;
		return 0;
	case 0x410110: {
		struct { uint32_t count; uint64_t list; } *s = p;

		if (o->class != 0x40)
			return NVRM_INVALID_OBJECT;
		((uint32_t *)(uintptr_t)s->list)[1] = (uint32_t)(o->size >> 12);
		return 0;
	}
	default:
		return NVRM_INVALID_COMMAND;
	}
}

static uint32_t drop(struct nvrm_free *f)
{
	struct object *o = object_of(f->object);

	if (!client || f->client != client)
		return NVRM_INVALID_CLIENT;
	if (!o)
		return NVRM_OBJECT_NOT_FOUND;
	forget_object(o);
	return 0;
}

static struct range *overlap(uint64_t base, uint64_t size)
{
	unsigned int i;

	for (i = 0; i < MAX; i++)
		if (ranges[i].size && base < ranges[i].base + ranges[i].size &&
		    ranges[i].base < base + size)
			return &ranges[i];
	return NULL;
}

static struct range *new_range(uint64_t base, uint64_t size)
{
	unsigned int i;

	for (i = 0; i < MAX && ranges[i].size; i++)
		continue;
	if (i == MAX)
		abort();
	ranges[i] = (struct range){ .base = base, .size = size };
	return &ranges[i];
}

static uint32_t lend(struct file *f, const struct nvuvm_lend *l)
{
	struct object *o;
	struct range *r;

	if ((l->base + l->offset) % PAGE || l->size % PAGE || !l->size ||
	    !(l->base + l->offset))
		return NVRM_INVALID_ARGUMENT;
	if (!f->registered || !is_gpu(l->uuid))
		return NVRM_INVALID_DEVICE;
	if (mock.nv_no_pages || mock.nv_no_static || mock.nv_write_combined)
		return NVRM_NOT_SUPPORTED;
	o = l->client == client ? object_of(l->memory) : NULL;
	if (!o || o->class != 0x40)
		return NVRM_OBJECT_NOT_FOUND;
	if (l->offset + l->size > o->size)
		return NVRM_INVALID_ARGUMENT;
	if (overlap(l->base, l->size))
		return NVRM_UVM_ADDRESS_IN_USE;
	r = new_range(l->base, l->size);
	r->offset = l->offset;
	r->id = o->id;
	r->backing = fcntl(o->backing, F_DUPFD_CLOEXEC, 3);
	if (r->backing < 0)
		abort();
	mock.nv_lent++;
	mock.nv_lendings++;
	return 0;
}

static uint32_t give_back(uint64_t base, uint64_t size)
{
	struct range *r = overlap(base, 1);

	if (!r || r->base != base || (size && r->size != size))
		return NVRM_INVALID_ADDRESS;
	forget_range(r);
	return 0;
}

static int uvm_ioctl(struct file *f, unsigned long cmd, void *arg)
{
	struct nvuvm_initialize *init = arg;
	struct nvuvm_register *reg = arg;
	struct nvuvm_free *fr = arg;
	struct nvuvm_lend *l = arg;
	/* of those that only a test of the calls makes */
	struct { uint64_t base, size; uint32_t status; } *ext = arg;
	struct { uint8_t skip[24 + 256 * 36 + 8]; uint32_t ctl, client, memory,
		 status; } *map = arg;
	struct { uint8_t uuid[16]; uint32_t ctl, client, space, status; }
		*space = arg;
	uint32_t ready = f->initialized ? 0 : NVRM_ILLEGAL_ACTION;
	struct object *o;

	switch (cmd) {
	case NVUVM_IOC_INITIALIZE:
		init->status = init->flags & ~3ull ? NVRM_INVALID_ARGUMENT : 0;
		f->initialized |= !init->status;
		break;
	case NVUVM_IOC_REGISTER_GPU:
		reg->status = ready ? ready :
			!is_gpu(reg->uuid) ? NVRM_GPU_UUID_NOT_FOUND :
			f->registered ? NVRM_INVALID_DEVICE : 0;
		f->registered |= !reg->status;
		break;
	case NVUVM_IOC_LEND:
		l->status = ready ? ready : lend(f, l);
		break;
	case NVUVM_IOC_FREE:
		if (atoi(mock.nvidia) >= 590)
			fr->status_590 = ready ? ready : give_back(fr->base, 0);
		else
			fr->status = ready ? ready : !fr->size ?
				NVRM_INVALID_ADDRESS :
				give_back(fr->base, fr->size);
		break;
	case 25:
		space->status = ready;
		break;
	case 73:
		ext->status = overlap(ext->base, ext->size) ?
			NVRM_UVM_ADDRESS_IN_USE : 0;
		if (!ext->status)
			new_range(ext->base, ext->size)->external = true;
		break;
	case 33:
		o = object_of(map->memory);
		map->status = o && o->class == 0x40 ? 0 : NVRM_OBJECT_NOT_FOUND;
		break;
	default:
		errno = EINVAL;
		return -1;
	}
	return 0;
}

/* The call that is to fail gets its status; the first member is left alone. */
static bool meant(unsigned long cmd, int *r)
{
	if (!mock.nv_fail || mock.nv_fail != (unsigned int)(cmd & 0xffff))
		return false;
	if (mock.nv_fail_errno) {
		errno = mock.nv_fail_errno;
		*r = -1;
	}
	if (mock.nv_fail_count && !--mock.nv_fail_count)
		mock.nv_fail = 0;
	return true;
}

static int ctl_ioctl(unsigned long cmd, void *arg)
{
	struct nvrm_version *v = arg;
	struct nvrm_control *c = arg;
	struct nvrm_alloc *a = arg;
	struct nvrm_free *f = arg;
	int r = 0;

	switch (cmd) {
	case NVRM_IOC_VERSION:
		v->reply = 1;
		strcpy(v->text, mock.nvidia);
		break;
	case NVRM_IOC_ALLOC:
		a->status = meant(a->class, &r) ? mock.nv_fail_status : alloc(a);
		break;
	case NVRM_IOC_CONTROL:
		c->status = meant(c->cmd, &r) ? mock.nv_fail_status : control(c);
		break;
	case NVRM_IOC_FREE:
		f->status = drop(f);
		break;
	default:
		errno = EINVAL;
		return -1;
	}
	return r;
}

bool mock_nv_ioctl(int fd, unsigned long cmd, void *arg, int *r)
{
	struct file *f = file_of(fd);

	if (!f || (f->kind != CTL && f->kind != UVM))
		return false;
	pthread_mutex_lock(&lock);
	mock.nv_calls++;
	*r = 0;
	if (f->kind == CTL)
		*r = ctl_ioctl(cmd, arg);
	else if (meant(cmd, r) && !*r)
		memcpy((char *)arg +
		       (cmd == NVUVM_IOC_LEND ?
				offsetof(struct nvuvm_lend, status) :
			cmd == NVUVM_IOC_REGISTER_GPU ?
				offsetof(struct nvuvm_register, status) :
				offsetof(struct nvuvm_initialize, status)),
		       &mock.nv_fail_status, 4);
	else if (!*r)
		*r = uvm_ioctl(f, cmd, arg);
	pthread_mutex_unlock(&lock);
	return true;
}

/* mmap() of such a descriptor: what is to be mapped instead, or NULL with errno. */
bool mock_nv_is_uvm(int fd)
{
	struct file *f = file_of(fd);

	return f && f->kind == UVM;
}

int mock_nv_mapped(int fd, void *addr, size_t len, int prot, int flags,
		   uint64_t off, uint64_t *id, uint64_t *at)
{
	struct range *r;
	int backing = -1, err = 0;

	pthread_mutex_lock(&lock);
	r = overlap(off, 1);
	if (!files[fd].initialized)
		err = EBADFD;
	else if ((uintptr_t)addr != off ||
		 prot != (PROT_READ | PROT_WRITE) || !(flags & MAP_SHARED))
		err = EINVAL;
	else if (!r || r->base != off || r->size != len || r->external)
		err = EINVAL;	/* it would be managed memory */
	else
		err = mock.nv_mmap_errno;
	if (err && err == mock.nv_mmap_errno && mock.nv_mmap_count &&
	    !--mock.nv_mmap_count)
		mock.nv_mmap_errno = 0;
	if (!err) {
		backing = r->backing;
		*id = r->id;
		*at = r->offset;
	}
	pthread_mutex_unlock(&lock);
	errno = err;
	return backing;
}
