// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peerlane: another driver imports GPU memory, and it is taken away.
 *
 *	pln_dmabuf GPU-PCI-ADDRESS PEER-PCI-ADDRESS
 *
 * The module peerlane_dmabuf_test plays the importer on behalf of the peer.
 */
#include <sys/wait.h>

#include "pln_test.h"

#define DIR "/sys/kernel/debug/peerlane_dmabuf_test/"

static const char *gpu_pci, *peer_pci;

struct state {
	int attached, mapped, invalidated;
	unsigned int nents, len;
	unsigned long long addr;
};

static int cmd(const char *text)
{
	int fd = open(DIR "cmd", O_WRONLY), ret, err;

	need(fd >= 0, "open the importer");
	ret = write(fd, text, strlen(text));
	err = errno;
	close(fd);
	errno = err;
	return ret < 0 ? -1 : 0;
}

static int attach(int buf, const char *kind)
{
	char text[128];

	snprintf(text, sizeof(text), "attach %d %s %s", buf, peer_pci, kind);
	return cmd(text);
}

static struct state state(void)
{
	struct state s = { 0 };
	FILE *f = fopen(DIR "state", "r");

	need(f && fscanf(f, "attached %d mapped %d invalidated %d nents %u addr %llx len %u",
			 &s.attached, &s.mapped, &s.invalidated, &s.nents,
			 &s.addr, &s.len) == 6, "state of the importer");
	fclose(f);
	return s;
}

/* Where BAR1 is, as the bus sees it */
static unsigned long long bar1_start(void)
{
	unsigned long long start = 0, end;
	char path[96];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/resource",
		 gpu_pci);
	f = fopen(path, "r");
	need(f && fscanf(f, "%*x %*x %*x %llx %llx", &start, &end) == 2,
	     "BAR1");
	fclose(f);
	return start;
}

static bool bar1_free_is(int fd, uint64_t want)
{
	int i;

	for (i = 0; i < 300; i++) {
		if (gpu_query(fd).bar1_free == want)
			return true;
		usleep(10000);
	}
	return false;
}

static void test_refusals(int fd)
{
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	int buf = gpu_export(fd, a.handle, 0, MIB);

	check_errno(attach(buf, "nop2p"), EOPNOTSUPP,
		    "importer without peer2peer");
	check_errno(attach(buf, "static"), EOPNOTSUPP,
		    "importer that cannot be revoked");
	gpu_free(fd, a.handle);
	check_errno(attach(buf, "p2p"), ENODEV, "attach after free");
	close(buf);
}

/* attach, map, use, unmap, detach */
static void test_order(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	int buf = gpu_export(fd, a.handle, UNIT, 2 * UNIT);
	unsigned long long bar1 = bar1_start();
	struct state s;

	check(!attach(buf, "p2p"), "attach");
	check(gpu_query(fd).bar1_free == q.bar1_free,
	      "an attachment alone takes no BAR1");
	check(!cmd("map"), "map");
	s = state();
	check(s.nents == 1 && s.len == 2 * UNIT, "one piece, the right size");
	check(s.addr >= bar1 && s.addr + s.len <= bar1 + q.bar1_size,
	      "its address is in BAR1 (%#llx)", s.addr);
	check(gpu_query(fd).bar1_free == q.bar1_free - 2 * UNIT,
	      "a mapping takes BAR1");
	close(buf);
	check(gpu_query(fd).bar1_free == q.bar1_free - 2 * UNIT,
	      "the importer keeps the dma-buf");
	check(!cmd("unmap") && bar1_free_is(fd, q.bar1_free),
	      "unmap gives BAR1 back");
	check(!cmd("map") && !cmd("unmap"), "and again");
	check(!cmd("detach"), "detach");
	gpu_free(fd, a.handle);
}

/* Free while an importer has the memory mapped */
static void test_revoke(int fd)
{
	struct pln_gpu_query q = gpu_query(fd), now;
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	int buf = gpu_export(fd, a.handle, 0, MIB);

	need(!attach(buf, "p2p") && !cmd("map"), "attach and map");
	check(!gpu_free(fd, a.handle), "free while a peer has it mapped");
	check(state().invalidated == 1, "the importer is told");
	now = gpu_query(fd);
	check(now.vram_free == q.vram_free - MIB &&
	      now.bar1_free == q.bar1_free - MIB,
	      "the memory waits for the importer");
	usleep(200000);
	now = gpu_query(fd);
	check(now.vram_free == q.vram_free - MIB, "and waits");
	check(!cmd("unmap"), "unmap");
	check(bar1_free_is(fd, q.bar1_free) &&
	      gpu_query(fd).vram_free == q.vram_free, "now it is free");
	check_errno(cmd("map"), ENODEV, "map after revocation");
	check(!cmd("detach"), "detach");
	close(buf);

	/* Detached before it is freed: nobody to tell */
	a = gpu_alloc(fd, MIB);
	buf = gpu_export(fd, a.handle, 0, MIB);
	need(!attach(buf, "p2p"), "attach");
	check(!cmd("detach") && !gpu_free(fd, a.handle),
	      "detach, then free");
	check(!state().invalidated, "nobody is told");
	close(buf);
}

/* The memory's file is closed, also by a kill, while it is mapped */
static void test_close(int fd)
{
	struct pln_gpu_query q = gpu_query(fd);
	int status, pipefd[2];
	char byte;
	pid_t pid;

	need(!pipe(pipefd), "pipe");
	pid = fork();
	need(pid >= 0, "fork");
	if (!pid) {
		int other = gpu_open();
		struct pln_gpu_alloc a = gpu_alloc(other, MIB);
		int buf = gpu_export(other, a.handle, 0, MIB);

		byte = attach(buf, "p2p") || cmd("map");
		if (write(pipefd[1], &byte, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	need(read(pipefd[0], &byte, 1) == 1 && !byte, "attach in a child");
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	check(state().invalidated == 1, "kill -9: the importer is told");
	check(gpu_query(fd).vram_free == q.vram_free - MIB,
	      "the memory waits for the importer");
	check(!cmd("unmap") && bar1_free_is(fd, q.bar1_free) &&
	      gpu_query(fd).vram_free == q.vram_free, "unmap frees it");
	check(!cmd("detach"), "detach");
}

/* Unbinding waits until the importer lets go */
static void test_unbind(int fd)
{
	struct pln_gpu_alloc a = gpu_alloc(fd, MIB);
	int buf = gpu_export(fd, a.handle, 0, MIB), status, out;
	struct pln_gpu_query q;
	pid_t pid;
	int i;

	need(!attach(buf, "p2p") && !cmd("map"), "attach and map");
	pid = fork();
	need(pid >= 0, "fork");
	if (!pid) {
		out = open("/sys/bus/pci/drivers/peerlane_gpu/unbind",
			   O_WRONLY);
		_exit(write(out, gpu_pci, strlen(gpu_pci)) < 0);
	}
	for (i = 0; i < 1000 && !state().invalidated; i++)
		usleep(10000);
	check(state().invalidated == 1, "unbind: the importer is told");
	check(ioctl(fd, PLN_GPU_IOC_QUERY, &q) == -1, "unbind: calls fail");
	check(waitpid(pid, &status, WNOHANG) == 0,
	      "unbind waits for the importer");
	check(!cmd("unmap"), "unmap");
	check(waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
	      !WEXITSTATUS(status), "then it ends");
	check_errno(cmd("map"), ENODEV, "map after unbinding");
	check(!cmd("detach"), "detach after unbinding");
	close(buf);
}

int main(int argc, char **argv)
{
	int fd;

	need(argc == 3, "usage: pln_dmabuf GPU-PCI-ADDRESS PEER-PCI-ADDRESS");
	gpu_pci = argv[1];
	peer_pci = argv[2];
	fd = gpu_open();
	test_refusals(fd);
	test_order(fd);
	test_revoke(fd);
	test_close(fd);
	test_unbind(fd);
	close(fd);
	return test_end();
}
