// SPDX-License-Identifier: MIT
/*
 * Many queue pairs and memory regions at a time, of many processes on one card.
 *
 *	cx-scale PROCESSES QUEUE-PAIRS REGIONS [LABEL]
 *
 * Each process opens the card and makes its queue pairs, one process after another, then, one after another again, its regions;
 * then all write from region to region at once; then each destroys what it has, one after another.  Prints what that took, by
 * quarters of all objects, as JSON.  Others have the processor, too: so it is the median of what each took in comparison with a
 * query of the port right after it.
 * With LABEL the host's side looks at the emulator's memory before and after each quarter of either kind, and at the end.
 */
#include <errno.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <infiniband/verbs.h>
#include "../lib/jsonc.h"

#define QUARTERS 4
#define BYTES 4096
#define LIMIT 120		/* s for a completion */
#define ALL (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

enum { MADE_QP, MADE_MR, GONE_QP, GONE_MR, KINDS };

static const char *const names[KINDS] = { "made_qp", "made_mr", "gone_qp", "gone_mr" };

/* What all processes share */
static struct shared {
	sem_t made, more, go, wrote, leave, left;
	unsigned int writes, wrong;
	unsigned int registered;	/* processes, so far */
	unsigned int gone;	/* processes, so far */
	double *took[KINDS];
	long *own_kib;		/* of each process */
} *shared;

static unsigned int processes, qps, regions;	/* of each process */

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static void wait_for(sem_t *sem)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 10 * LIMIT;
	while (sem_timedwait(sem, &end))
		if (errno != EINTR)
			die("another process");
}

static void *map(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

/* What began at @start has taken so many queries of the port */
static double took(struct ibv_context *ctx, double start)
{
	double end = now();
	struct ibv_port_attr port;

	if (ibv_query_port(ctx, 1, &port))
		die("ibv_query_port");
	return (end - start) / (now() - end);
}

/* A number that a file of /proc has behind @name */
static long field(const char *file, const char *name)
{
	FILE *f = fopen(file, "r");
	size_t n = strlen(name);
	char line[256];
	long kib = -1;

	while (f && kib < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, name, n))
			kib = atol(line + n);
	if (f)
		fclose(f);
	return kib;
}

/* The host's side notes how much memory the emulator has now */
static void look(const char *label, const char *when)
{
	char command[128];

	snprintf(command, sizeof(command), "host memory %s %s >&2", label, when);
	if (label && system(command))
		die(command);
}

static void connect_qp(struct ibv_qp *qp, uint32_t to, uint16_t lid)
{
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ALL,
	}, rtr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096, .dest_qp_num = to,
		.max_dest_rd_atomic = 1, .min_rnr_timer = 12,
		.ah_attr = { .dlid = lid, .port_num = 1 },
	}, rts = {
		.qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7,
		.max_rd_atomic = 1,
	};

	if (ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			  IBV_QP_ACCESS_FLAGS) ||
	    ibv_modify_qp(qp, &rtr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			  IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			  IBV_QP_MIN_RNR_TIMER) ||
	    ibv_modify_qp(qp, &rts, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			  IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		die("ibv_modify_qp");
}

/* The bytes of a page before anything is written there */
static uint32_t word(unsigned int process, unsigned int region)
{
	return (process * regions + region + 1) * 2654435761u;
}

/* Each page to the one behind it, which then has what its neighbour had; by each queue pair in turn */
static void write_all(unsigned int process, struct ibv_cq *cq, struct ibv_qp **qp,
		      struct ibv_mr **mr, uint32_t *buf)
{
	unsigned int words = BYTES / sizeof(*buf), wrong = 0;

	for (unsigned int i = regions - 1; i; i--) {
		struct ibv_sge sge = { (uintptr_t)(buf + (i - 1) * words), BYTES, mr[i - 1]->lkey };
		struct ibv_send_wr wr = {
			.opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
			.send_flags = IBV_SEND_SIGNALED,
		}, *bad;
		time_t end = time(NULL) + LIMIT;
		struct ibv_wc wc;
		int n;

		wr.wr.rdma.remote_addr = (uintptr_t)(buf + i * words);
		wr.wr.rdma.rkey = mr[i]->rkey;
		if (ibv_post_send(qp[i % qps], &wr, &bad))
			die("ibv_post_send");
		while (!(n = ibv_poll_cq(cq, 1, &wc)) && time(NULL) < end)
			;
		if (n != 1 || wc.status)
			die("a WRITE did not end well");
		__atomic_add_fetch(&shared->writes, 1, __ATOMIC_RELAXED);
	}
	for (unsigned int i = 0; i < regions; i++)
		for (unsigned int j = 0; j < words; j++)
			wrong += buf[i * words + j] != word(process, i ? i - 1 : 0);
	__atomic_add_fetch(&shared->wrong, wrong, __ATOMIC_RELAXED);
}

static void work(unsigned int process)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_mr **mr = calloc(regions, sizeof(*mr));
	struct ibv_qp **qp = calloc(qps, sizeof(*qp));
	struct ibv_context *ctx;
	struct ibv_port_attr port;
	struct ibv_pd *pd;
	unsigned int turn;	/* of this process among all */
	struct ibv_cq *cq;
	uint32_t *buf;
	double start;

	if (!devices || !devices[0] || !mr || !qp)
		die("no RDMA device");
	ctx = ibv_open_device(devices[0]);
	if (!ctx || ibv_query_port(ctx, 1, &port))
		die("ibv_open_device");
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	buf = map((size_t)regions * BYTES);
	if (!pd || !cq)
		die("no domain or completion queue");
	for (unsigned int i = 0; i < regions; i++)
		for (unsigned int j = 0; j < BYTES / sizeof(*buf); j++)
			buf[i * (BYTES / sizeof(*buf)) + j] = word(process, i);
	attr.send_cq = attr.recv_cq = cq;
	for (unsigned int i = 0; i < qps; i++) {
		start = now();
		qp[i] = ibv_create_qp(pd, &attr);
		if (!qp[i])
			die("ibv_create_qp");
		shared->took[MADE_QP][process * qps + i] = took(ctx, start);
	}
	for (unsigned int i = 0; i < qps; i++)
		connect_qp(qp[i], qp[i ^ 1]->qp_num, port.lid);
	sem_post(&shared->made);
	wait_for(&shared->more);
	turn = shared->registered++;
	for (unsigned int i = 0; i < regions; i++) {
		start = now();
		mr[i] = ibv_reg_mr(pd, (char *)buf + (size_t)i * BYTES, BYTES, ALL);
		if (!mr[i])
			die("ibv_reg_mr");
		shared->took[MADE_MR][turn * regions + i] = took(ctx, start);
	}
	shared->own_kib[turn] = field("/proc/self/smaps_rollup", "Pss:");
	sem_post(&shared->made);
	wait_for(&shared->go);
	write_all(process, cq, qp, mr, buf);
	sem_post(&shared->wrote);
	wait_for(&shared->leave);
	turn = shared->gone++;
	for (unsigned int i = 0; i < qps; i++) {
		start = now();
		if (ibv_destroy_qp(qp[i]))
			die("ibv_destroy_qp");
		shared->took[GONE_QP][turn * qps + i] = took(ctx, start);
	}
	for (unsigned int i = 0; i < regions; i++) {
		start = now();
		if (ibv_dereg_mr(mr[i]))
			die("ibv_dereg_mr");
		shared->took[GONE_MR][turn * regions + i] = took(ctx, start);
	}
	if (ibv_destroy_cq(cq) || ibv_dealloc_pd(pd) || ibv_close_device(ctx))
		die("close");
	sem_post(&shared->left);
	exit(0);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	struct json_object *report = json_object_new_object(), *less = json_object_new_array();
	struct json_object *theirs = json_object_new_array();
	unsigned int count[KINDS];
	const char *label = argc > 4 ? argv[4] : NULL;
	const char *const qp_looks[] = { "qp1", "qp2", "qp3", "qp4" };
	const char *const mr_looks[] = { "mr1", "mr2", "mr3", "mr4" };
	long taken[QUARTERS] = { 0 }, left;
	unsigned int done;
	int status, bad = 0;

	if (argc < 4 || argc > 5)
		die("arguments");
	processes = atoi(argv[1]);
	qps = atoi(argv[2]) / processes;
	regions = atoi(argv[3]) / processes;
	if (processes % QUARTERS || qps % 2 || !qps || regions < 2)
		die("arguments");
	shared = map(sizeof(*shared));
	for (int i = 0; i < KINDS; i++) {
		count[i] = processes * (i == MADE_QP || i == GONE_QP ? qps : regions);
		shared->took[i] = map(count[i] * sizeof(double));
	}
	shared->own_kib = map(processes * sizeof(long));
	if (sem_init(&shared->made, 1, 0) || sem_init(&shared->more, 1, 0) ||
	    sem_init(&shared->go, 1, 0) ||
	    sem_init(&shared->wrote, 1, 0) || sem_init(&shared->leave, 1, 0) ||
	    sem_init(&shared->left, 1, 0))
		die("sem_init");
	look(label, "before");
	left = field("/proc/meminfo", "MemAvailable:");
	for (unsigned int i = 0; i < 2 * processes; i++) {
		if (i >= processes) {
			sem_post(&shared->more);
		} else {
			switch (fork()) {
			case -1:
				die("fork");
			case 0:
				work(i);
			}
		}
		wait_for(&shared->made);
		done = (i + 1) % processes ?: processes;
		if (done % (processes / QUARTERS) == 0) {
			unsigned int n = done / (processes / QUARTERS) - 1;
			long now_left = field("/proc/meminfo", "MemAvailable:");

			taken[n] += left - now_left;
			left = now_left;
			look(label, i < processes ? qp_looks[n] : mr_looks[n]);
		}
	}
	for (unsigned int i = 0; i < processes; i++)
		sem_post(&shared->go);
	for (unsigned int i = 0; i < processes; i++)
		wait_for(&shared->wrote);
	for (unsigned int i = 0; i < processes; i++) {
		sem_post(&shared->leave);
		wait_for(&shared->left);
	}
	while (wait(&status) > 0)
		bad += status != 0;
	look(label, "after");
	json_set(report, "processes", processes);
	json_set(report, "qps", count[MADE_QP]);
	json_set(report, "mrs", count[MADE_MR]);
	json_set(report, "writes", shared->writes);
	json_set(report, "wrong", shared->wrong);
	json_set(report, "failed", bad);
	for (int i = 0; i < KINDS; i++) {
		struct json_object *medians = json_object_new_array();
		unsigned int n = count[i] / QUARTERS;

		for (unsigned int j = 0; j < QUARTERS; j++) {
			qsort(shared->took[i] + j * n, n, sizeof(double), compare);
			json_object_array_add(medians, json_decimal(shared->took[i][j * n + n / 2]));
		}
		json_set(report, names[i], medians);
	}
	for (unsigned int i = 0; i < QUARTERS; i++) {
		long own = 0;

		for (unsigned int j = 0; j < processes / QUARTERS; j++)
			own += shared->own_kib[i * (processes / QUARTERS) + j];
		json_object_array_add(less, json_object_new_int64(taken[i]));
		json_object_array_add(theirs, json_object_new_int64(own));
	}
	json_set(report, "memory_kib", less);
	json_set(report, "own_kib", theirs);
	print_json(report);
	return bad || shared->wrong;
}
