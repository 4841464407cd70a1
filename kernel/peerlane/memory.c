// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: GPU memory that processes have registered.
 *
 * The GPU's driver pins it: NVIDIA's, or that of the emulated GPU.  Its rules:
 *  - It may take memory away at any time, from the moment that get_pages() has
 *    filled in the table, by a callback.  When that returns, no DMA may be under
 *    way, and the table is gone.
 *  - put_pages() waits for a callback that runs.  So nobody may hold what the
 *    callback waits for while he calls it, and the callback may not call it.
 *  - NVIDIA's driver finds the table by the calling process.  Elsewhere put_pages()
 *    does nothing and returns 0, and the callback is still to come.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/memremap.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/overflow.h>
#include <linux/rwsem.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "peerlane.h"

unsigned int pln_max_pinned_mib = 32768;
module_param_named(max_pinned_mib, pln_max_pinned_mib, uint, 0644);
MODULE_PARM_DESC(max_pinned_mib,
		 "GPU memory that a user without CAP_IPC_LOCK may have registered, in MiB (default 32768)");

struct pln_stats pln_stats;

/*
 * Weak, so that the module is bound to no driver by name and says itself that
 * there is none.  symbol_get() would be the way, but takes only GPL exports.
 */
typeof(nvidia_p2p_get_pages) nvidia_p2p_get_pages __weak;
typeof(nvidia_p2p_put_pages) nvidia_p2p_put_pages __weak;
typeof(nvidia_p2p_free_page_table) nvidia_p2p_free_page_table __weak;

/* Pointers: a direct call of a function that is not there cannot be linked */
static struct {
	int (*get_pages)(u64 p2p_token, u32 va_space, u64 virtual_address,
			 u64 length, struct nvidia_p2p_page_table **page_table,
			 void (*free_callback)(void *data), void *data);
	int (*put_pages)(u64 p2p_token, u32 va_space, u64 virtual_address,
			 struct nvidia_p2p_page_table *page_table);
	int (*free_page_table)(struct nvidia_p2p_page_table *page_table);
} pln_gpu __ro_after_init;

/**
 * struct pln_user - a user with registered memory
 * @node: in pln_users, guarded by pln_user_lock
 * @uid: the user
 * @pinned: bytes, more than 0
 */
struct pln_user {
	struct list_head node;
	kuid_t uid;
	u64 pinned;
};

static DEFINE_SPINLOCK(pln_user_lock);
static LIST_HEAD(pln_users);

/**
 * struct pln_process - a process with registered memory
 * @node: in pln_processes, guarded by pln_user_lock
 * @pid: the process
 * @mems: its registrations, more than 0; guarded by pln_user_lock
 * @puts: held for reading from the check whether the memory was taken away until
 *	put_pages() has returned; for writing while get_pages() runs
 *
 * put_pages() knows a table by its address.  Between the check and the call the memory
 * may be freed, and other memory of the process registered, whose table has the
 * address of the first one: that would be put.  The callback does not take @puts, so
 * put_pages() may wait for it.  Tables of other modules in the same process, such as
 * nvidia-peermem's, are not covered.
 */
struct pln_process {
	struct list_head node;
	struct pid *pid;
	unsigned int mems;
	struct rw_semaphore puts;
};

static LIST_HEAD(pln_processes);

static struct pln_user *pln_user_find(kuid_t uid)
{
	struct pln_user *user;

	lockdep_assert_held(&pln_user_lock);
	list_for_each_entry(user, &pln_users, node)
		if (uid_eq(user->uid, uid))
			return user;
	return NULL;
}

u64 pln_user_pinned(kuid_t uid)
{
	struct pln_user *user;
	u64 pinned;

	spin_lock(&pln_user_lock);
	user = pln_user_find(uid);
	pinned = user ? user->pinned : 0;
	spin_unlock(&pln_user_lock);
	return pinned;
}

static int pln_user_charge(kuid_t uid, u64 size)
{
	u64 max = (u64)READ_ONCE(pln_max_pinned_mib) * SZ_1M;
	bool may = capable(CAP_IPC_LOCK);
	struct pln_user *user, *new;
	u64 pinned;
	int ret = 0;

	new = kzalloc_obj(*new, GFP_KERNEL_ACCOUNT);
	if (!new)
		return -ENOMEM;
	spin_lock(&pln_user_lock);
	user = pln_user_find(uid);
	if (check_add_overflow(user ? user->pinned : 0, size, &pinned)) {
		/* Nobody has so much; a sum that has wrapped may become 0 too early */
		ret = -EINVAL;
	} else if (!may && pinned > max) {
		ret = -EDQUOT;
	} else if (user) {
		user->pinned = pinned;
	} else {
		new->uid = uid;
		new->pinned = size;
		list_add(&new->node, &pln_users);
		new = NULL;
	}
	spin_unlock(&pln_user_lock);
	kfree(new);
	return ret;
}

static void pln_user_uncharge(kuid_t uid, u64 size)
{
	struct pln_user *user;

	spin_lock(&pln_user_lock);
	user = pln_user_find(uid);
	user->pinned -= size;
	if (user->pinned)
		user = NULL;
	else
		list_del(&user->node);
	spin_unlock(&pln_user_lock);
	kfree(user);
}

/* The entry of the calling process; NULL if there is no memory for it */
static struct pln_process *pln_process_get(void)
{
	struct pln_process *process, *new;

	new = kzalloc_obj(*new, GFP_KERNEL_ACCOUNT);
	if (!new)
		return NULL;
	spin_lock(&pln_user_lock);
	list_for_each_entry(process, &pln_processes, node)
		if (process->pid == task_tgid(current))
			goto out;
	process = new;
	new = NULL;
	process->pid = get_pid(task_tgid(current));
	init_rwsem(&process->puts);
	list_add(&process->node, &pln_processes);
out:
	process->mems++;
	spin_unlock(&pln_user_lock);
	kfree(new);
	return process;
}

static void pln_process_put(struct pln_process *process)
{
	spin_lock(&pln_user_lock);
	if (--process->mems)
		process = NULL;
	else
		list_del(&process->node);
	spin_unlock(&pln_user_lock);
	if (!process)
		return;
	put_pid(process->pid);
	kfree(process);
}

/**
 * pln_mem_is_own - is memory that of the calling process?
 * @mem: any
 */
bool pln_mem_is_own(const struct pln_mem *mem)
{
	return mem->process->pid == task_tgid(current);
}

static void pln_mem_put(struct pln_mem *mem)
{
	if (refcount_dec_and_test(&mem->ios))
		complete_all(&mem->idle);
}

/**
 * pln_mem_io_begin - IO with the memory begins
 * @mem: found under the lock of its xarray
 *
 * Return: 0, and pln_mem_io_end() must follow; else as pln_mem_stopped().
 */
int pln_mem_io_begin(struct pln_mem *mem)
{
	int ret = pln_mem_stopped(mem);

	if (ret)
		return ret;
	/* A count of 0 orders nothing: the bits may not be seen yet */
	if (!refcount_inc_not_zero(&mem->ios))
		return pln_mem_stopped(mem) ?: -EIDRM;
	/*
	 * Who takes the pages away waits for IO.  nvidia-uvm does so before its memory
	 * goes; what its page map lies in stays until the driver is unbound.
	 */
	if (percpu_ref_tryget_live(&mem->pgmap->ref))
		return 0;
	pln_mem_put(mem);
	return -EIDRM;
}

void pln_mem_io_end(struct pln_mem *mem)
{
	put_dev_pagemap(mem->pgmap);
	pln_mem_put(mem);
}

/* No new IO, and wait for what is under way */
static void pln_mem_stop(struct pln_mem *mem)
{
	if (!test_and_set_bit(PLN_MEM_STOPPED, &mem->flags))
		pln_mem_put(mem);
	wait_for_completion(&mem->idle);
}

static void pln_mem_free(struct pln_mem *mem)
{
	atomic64_dec(&pln_stats.memories);
	atomic64_sub(mem->size, &pln_stats.pinned);
	pln_user_uncharge(mem->uid, mem->size);
	pln_process_put(mem->process);
	kvfree(mem->kvec);
	kfree(mem);
}

/*
 * The callback: the GPU's driver takes the memory away.  It may hold a lock of
 * its own that all of its users need.  After the last statement the module may be
 * unloaded; pln_exit() waits until this function has been left.
 */
static void pln_mem_gone(void *data)
{
	struct pln_mem *mem = data;

	set_bit(PLN_MEM_REVOKED, &mem->flags);
	pln_mem_stop(mem);
	pln_gpu.free_page_table(mem->table);
	if (!test_and_set_bit(PLN_MEM_LEFT, &mem->flags)) {
		complete_all(&mem->done);
		return;
	}
	pln_mem_free(mem);
	atomic64_dec(&pln_stats.orphans);
	module_put(THIS_MODULE);
}

/*
 * Leave the memory to the callback.  Returns false when that had come already, and
 * the memory is still the caller's.
 */
static bool pln_mem_leave(struct pln_mem *mem)
{
	/* The caller has an open file of ours, so there is a reference already */
	__module_get(THIS_MODULE);
	atomic64_inc(&pln_stats.orphans);
	if (!test_and_set_bit(PLN_MEM_LEFT, &mem->flags))
		return true;
	atomic64_dec(&pln_stats.orphans);
	module_put(THIS_MODULE);
	return false;
}

/**
 * pln_mem_end - memory is not registered any more
 * @mem: that nobody else can find; it is not the caller's any more
 *
 * Waits for IO under way.  Holds nothing that the callback waits for.
 */
void pln_mem_end(struct pln_mem *mem)
{
	bool put = false;

	pln_mem_stop(mem);
	if (pln_mem_is_own(mem)) {
		down_read(&mem->process->puts);
		if (!test_bit(PLN_MEM_REVOKED, &mem->flags))
			put = !pln_gpu.put_pages(0, 0, mem->va, mem->table);
		up_read(&mem->process->puts);
	}
	if (!put) {
		if (!test_bit(PLN_MEM_REVOKED, &mem->flags) && pln_mem_leave(mem))
			return;
		wait_for_completion(&mem->done);
	}
	pln_mem_free(mem);
}

/*
 * The P2PDMA page map that has the page, with a reference: the pages may not go while
 * they are looked at.
 */
static struct dev_pagemap *pln_p2p_pgmap(unsigned long pfn)
{
	struct dev_pagemap *pgmap = pln_get_dev_pagemap(pfn);

	/*
	 * pci_p2pdma_add_resource() makes them with one range.  Until they are made it is
	 * none, though there is a reference already.
	 */
	if (pgmap && (pgmap->type != MEMORY_DEVICE_PCI_P2PDMA ||
		      READ_ONCE(pgmap->nr_range) != 1)) {
		put_dev_pagemap(pgmap);
		return NULL;
	}
	return pgmap;
}

/* The callback, if it has begun, waits for the caller, so the table is there */
static int pln_mem_pages(struct pln_mem *mem, u32 *reason)
{
	static const unsigned int shifts[NVIDIA_P2P_PAGE_SIZE_COUNT] = {
		[NVIDIA_P2P_PAGE_SIZE_4KB] = 12,
		[NVIDIA_P2P_PAGE_SIZE_64KB] = 16,
		[NVIDIA_P2P_PAGE_SIZE_128KB] = 17,
	};
	struct nvidia_p2p_page_table *table = mem->table;
	struct dev_pagemap *pgmap;
	struct range range;
	unsigned long first;
	int ret = 0;
	u32 i;

	/* What both versions have is all that is used */
	if (!NVIDIA_P2P_MAJOR_VERSION_MATCHES(table, NVIDIA_P2P_PAGE_TABLE_VERSION) &&
	    !NVIDIA_P2P_MAJOR_VERSION_MATCHES(table, NVIDIA_P2P_PAGE_TABLE_VERSION_1))
		return -EPROTO;
	if (table->page_size >= NVIDIA_P2P_PAGE_SIZE_COUNT)
		return -EPROTO;
	mem->shift = shifts[table->page_size];
	if ((u64)table->entries << mem->shift < mem->size)
		return -EPROTO;

	mem->kvec = kvcalloc(table->entries, sizeof(*mem->kvec),
			     GFP_KERNEL_ACCOUNT);
	if (!mem->kvec)
		return -ENOMEM;
	first = PHYS_PFN(table->pages[0]->physical_address);
	pgmap = pln_p2p_pgmap(first);
	if (!pgmap) {
		ret = pln_pages_make(mem, PFN_PHYS(first));
		if (ret == -EOPNOTSUPP)
			*reason = PLN_REASON_NO_PAGES;
		else if (ret == -EIDRM)
			*reason = PLN_REASON_FREED;
		if (ret)
			return ret;
		pgmap = pln_p2p_pgmap(first);
	}
	if (!pgmap) {
		*reason = PLN_REASON_NO_PAGES;
		return -EOPNOTSUPP;
	}
	mem->pgmap = pgmap;
	range = pgmap->range;
	for (i = 0; i < table->entries; i++) {
		u64 phys = table->pages[i]->physical_address;

		/* The block layer looks at the first page of an IO */
		if (phys < range.start ||
		    phys + (1ull << mem->shift) - 1 > range.end) {
			*reason = PLN_REASON_NO_PAGES;
			ret = -EOPNOTSUPP;
			break;
		}
		mem->kvec[i] = (struct kvec){
			.iov_base = page_address(pfn_to_page(PHYS_PFN(phys))),
			.iov_len = 1ul << mem->shift,
		};
	}
	put_dev_pagemap(pgmap);
	return ret;
}

/**
 * pln_mem_register - pin GPU memory of the calling process
 * @va: multiple of PLN_PAGE_SIZE
 * @size: likewise, not 0
 * @reason: out, when it fails: an enum pln_reason
 *
 * Return: what pln_mem_end() ends, or an errno.
 */
struct pln_mem *pln_mem_register(u64 va, u64 size, u32 *reason)
{
	struct pln_mem *mem;
	int ret;

	mem = kzalloc_obj(*mem, GFP_KERNEL_ACCOUNT);
	if (!mem)
		return ERR_PTR(-ENOMEM);
	/* One is the caller's: the callback waits for pln_mem_pages() */
	refcount_set(&mem->ios, 2);
	init_completion(&mem->idle);
	init_completion(&mem->done);
	mem->va = va;
	mem->size = size;
	mem->uid = current_uid();
	ret = pln_user_charge(mem->uid, size);
	if (ret) {
		if (ret == -EDQUOT)
			*reason = PLN_REASON_LIMIT;
		kfree(mem);
		return ERR_PTR(ret);
	}
	mem->process = pln_process_get();
	if (!mem->process) {
		pln_user_uncharge(mem->uid, size);
		kfree(mem);
		return ERR_PTR(-ENOMEM);
	}
	atomic64_inc(&pln_stats.memories);
	atomic64_add(size, &pln_stats.pinned);

	down_write(&mem->process->puts);
	ret = pln_gpu.get_pages(0, 0, va, size, &mem->table, pln_mem_gone, mem);
	up_write(&mem->process->puts);
	if (ret) {
		pln_mem_free(mem);
		return ERR_PTR(ret);
	}
	ret = pln_mem_pages(mem, reason);
	pln_mem_put(mem);
	if (ret) {
		pln_mem_end(mem);
		return ERR_PTR(ret);
	}
	return mem;
}

/**
 * pln_gpu_find - the driver that pins GPU memory
 *
 * Return: 0; -ENODEV: none was loaded before this module.
 */
int __init pln_gpu_find(void)
{
	pln_gpu.get_pages = nvidia_p2p_get_pages;
	pln_gpu.put_pages = nvidia_p2p_put_pages;
	pln_gpu.free_page_table = nvidia_p2p_free_page_table;
	/* The compiler is not to know where these come from */
	barrier_data(&pln_gpu);
	if (!pln_gpu.get_pages || !pln_gpu.put_pages ||
	    !pln_gpu.free_page_table)
		return -ENODEV;
	return 0;
}
