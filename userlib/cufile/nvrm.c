// SPDX-License-Identifier: MIT
/* NVIDIA's kernel drivers: see nvrm.h.  One call, one function. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "../core/errname.h"
#include "internal.h"
#include "nvrm.h"

const char *nvrm_status_name(uint32_t status)
{
	switch (status) {
#define PLN_X(name, number) case NVRM_##name: return #name;
	NVRM_STATUSES(PLN_X)
#undef PLN_X
	default:
		return "";
	}
}

void nvrm_says(const struct nvrm *n, char *out, size_t size)
{
	const char *name = nvrm_status_name(n->status);

	if (n->err)
		snprintf(out, size, "%s: %s (%d): %s", n->call,
			 errname(n->err), n->err, strerror(n->err));
	else
		snprintf(out, size, "%s: %s%sstatus 0x%x", n->call, name,
			 name[0] ? ", " : "", n->status);
}

/* The latest call is @call; @err: errno, or 0 and @status is the answer. */
static bool came_to(struct nvrm *n, const char *call, int err, uint32_t status)
{
	char words[160];

	n->call = call;
	n->err = err;
	n->status = status;
	nvrm_says(n, words, sizeof(words));
	log_line(LOG_DEBUG, "nvidia: %s", words);
	return !err && !status;
}

/* A signal may come before the driver has begun. */
static int call(int fd, unsigned long cmd, void *arg)
{
	int r;

	do {
		r = ioctl(fd, cmd, arg);
	} while (r && errno == EINTR);
	return r ? errno : 0;
}

bool nvrm_open(struct nvrm *n)
{
	struct nvrm_version v = { .cmd = '2' };
	int err;

	/* one by one: a child may close them meanwhile */
	n->ctl = n->uvm = -1;
	/* and know nothing of the ones before */
	n->ctl_node = n->uvm_node = (struct node){ .known = false };
	n->client = 0;
	n->major = 0;
	memset(n->version, 0, sizeof(n->version));
	n->ctl = no_stream(open("/dev/nvidiactl", O_RDWR | O_CLOEXEC));
	if (!came_to(n, "open of /dev/nvidiactl", n->ctl < 0 ? errno : 0, 0))
		return false;
	n->ctl_node = node_of_own(n->ctl, false);
	n->uvm = no_stream(open("/dev/nvidia-uvm", O_RDWR | O_CLOEXEC));
	if (!came_to(n, "open of /dev/nvidia-uvm", n->uvm < 0 ? errno : 0, 0))
		return false;
	n->uvm_node = node_of_own(n->uvm, false);
	err = call(n->ctl, NVRM_IOC_VERSION, &v);
	if (!came_to(n, "version", err, v.reply == 1 ? 0 : NVRM_GENERIC))
		return false;
	memcpy(n->version, v.text, sizeof(v.text) - 1);
	n->major = (unsigned int)strtoul(n->version, NULL, 10);
	return true;
}

/* The client goes with its descriptor, and all that it has with it. */
void nvrm_close(struct nvrm *n)
{
	int uvm = n->uvm, ctl = n->ctl;

	/* first: a child of a later moment must not close what is another's by then */
	n->uvm = n->ctl = -1;
	n->client = 0;
	close_own(uvm, &n->uvm_node);
	close_own(ctl, &n->ctl_node);
}

bool nvrm_counts_right(const struct nvrm *n)
{
	unsigned int major = 0, minor = 0;
	struct utsname u;

	if (n->major >= 595 || uname(&u))
		return true;
	return sscanf(u.release, "%u.%u", &major, &minor) == 2 &&
	       (major < 6 || (major == 6 && minor < 15));
}

bool nvrm_make(struct nvrm *n, const char *what, nvrm_handle parent,
	       uint32_t class, void *params, uint32_t size, nvrm_handle *object)
{
	struct nvrm_alloc a = {
		.client = n->client, .parent = parent, .class = class,
		.params = (uintptr_t)params, .params_size = size,
	};
	int err = call(n->ctl, NVRM_IOC_ALLOC, &a);

	*object = a.object;
	return came_to(n, what, err, a.status);
}

bool nvrm_ask(struct nvrm *n, const char *what, nvrm_handle object,
	      uint32_t cmd, void *params, uint32_t size)
{
	struct nvrm_control c = {
		.client = n->client, .object = object, .cmd = cmd,
		.params = (uintptr_t)params, .params_size = size,
	};
	int err = call(n->ctl, NVRM_IOC_CONTROL, &c);

	return came_to(n, what, err, c.status);
}

bool nvrm_drop(struct nvrm *n, nvrm_handle parent, nvrm_handle object)
{
	struct nvrm_free f = {
		.client = n->client, .parent = parent, .object = object,
	};
	int err = call(n->ctl, NVRM_IOC_FREE, &f);

	return came_to(n, "RM_FREE", err, f.status);
}

bool nvuvm_initialize(struct nvrm *n)
{
	struct nvuvm_initialize i = {
		.flags = NVUVM_NO_HMM | NVUVM_MULTI_PROCESS,
	};
	int err = call(n->uvm, NVUVM_IOC_INITIALIZE, &i);

	return came_to(n, "UVM_INITIALIZE", err, i.status);
}

bool nvuvm_register(struct nvrm *n, const void *uuid)
{
	struct nvuvm_register r = { .ctl = n->ctl, .client = n->client };
	int err;

	memcpy(r.uuid, uuid, sizeof(r.uuid));
	err = call(n->uvm, NVUVM_IOC_REGISTER_GPU, &r);
	return came_to(n, "UVM_REGISTER_GPU", err, r.status);
}

bool nvuvm_lend(struct nvrm *n, const void *uuid, nvrm_handle memory,
		uint64_t base, uint64_t size, uint64_t offset)
{
	struct nvuvm_lend l = {
		.base = base, .size = size, .offset = offset,
		.ctl = n->ctl, .client = n->client, .memory = memory,
	};
	int err;

	memcpy(l.uuid, uuid, sizeof(l.uuid));
	err = call(n->uvm, NVUVM_IOC_LEND, &l);
	return came_to(n, "UVM_ALLOC_DEVICE_P2P", err, l.status);
}

bool nvuvm_free(struct nvrm *n, uint64_t base, uint64_t size)
{
	struct nvuvm_free f = { .base = base };
	int err;

	if (n->major < 590)
		f.size = size;
	err = call(n->uvm, NVUVM_IOC_FREE, &f);
	return came_to(n, "UVM_FREE", err,
		       n->major < 590 ? f.status : f.status_590);
}
