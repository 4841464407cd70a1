/* SPDX-License-Identifier: MIT */
/* rdma-put: waits for 1 MiB in GPU memory; rdma-put HOST: writes it there from GPU memory here */
#include <cuda.h>
#include <err.h>
#include <peerlane/mr.h>
#include <peerlane/peerlane.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <unistd.h>

#define SIZE	(1 << 20)
#define TRY(call)	do { if (call) err(1, "%s", #call); } while (0)
struct place { uint64_t address; uint32_t key; };	/* where the peer may write */

static struct pln_mr *gpu_memory(struct ibv_pd *pd, CUdeviceptr *gpu, int fill)
{
	struct pln_mr_info info = { .size = sizeof(info) };
	struct pln_mr *mr;
	CUcontext context;
	int r;

	if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
	    cuMemAlloc(gpu, SIZE) || cuMemsetD8(*gpu, fill, SIZE) || cuCtxSynchronize())
		errx(1, "no GPU, or no memory of it");
	r = pln_mr_reg(pd, (void *)*gpu, SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
		       0, &mr);
	pln_mr_info(r ? NULL : mr, &info);
	if (r)
		errx(1, "pln_mr_reg: %s: %s", pln_strerror(r), info.reason);
	printf("registered %s\n", info.reason);
	return mr;
}

int main(int argc, char **argv)
{
	struct rdma_addrinfo *to, hints = { argc > 1 ? 0 : RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP };
	struct ibv_qp_init_attr qp;
	struct place place = { 0 };
	struct rdma_conn_param param = { &place, sizeof(place), .retry_count = 7, .rnr_retry_count = 7 };
	struct rdma_cm_id *id;
	static char got[SIZE];
	struct ibv_wc wc;
	struct pln_mr *mr;
	CUdeviceptr gpu;

	alarm(120);	/* ends a program whose peer does not come */
	TRY(rdma_getaddrinfo(argv[1], "18520", &hints, &to));
again:
	qp = (struct ibv_qp_init_attr){ .cap = { 2, 1, 1, 1 }, .sq_sig_all = 1 };
	TRY(rdma_create_ep(&id, to, NULL, &qp));
	if (argc > 1) {
		if (rdma_connect(id, &param)) {
			TRY(errno != ECONNREFUSED);
			rdma_destroy_ep(id);	/* nobody listens yet */
			sleep(1);
			goto again;
		}
		TRY(id->event->param.conn.private_data_len < sizeof(place));
		memcpy(&place, id->event->param.conn.private_data, sizeof(place));
		mr = gpu_memory(id->pd, &gpu, 'p');
		TRY(pln_mr_from_gpu(mr, 0, SIZE));	/* a copy if it is staged */
		TRY(rdma_post_write(id, NULL, (void *)pln_mr_iova(mr, 0), SIZE, pln_mr_verbs(mr),
				    0, place.address, place.key));
		TRY(rdma_post_send(id, NULL, NULL, 0, NULL, 0));	/* comes after the data */
		for (int sent = 0; sent < 2; sent++)
			TRY(rdma_get_send_comp(id, &wc) < 1 || wc.status);
	} else {
		TRY(rdma_listen(id, 1) || rdma_get_request(id, &id));
		mr = gpu_memory(id->pd, &gpu, 0);
		place = (struct place){ pln_mr_iova(mr, 0), pln_mr_verbs(mr)->rkey };
		TRY(rdma_post_recvv(id, NULL, NULL, 0) || rdma_accept(id, &param));
		TRY(rdma_get_recv_comp(id, &wc) < 1 || wc.status);
		TRY(pln_mr_to_gpu(mr, 0, SIZE));	/* a copy if it is staged */
		if (cuMemcpyDtoH(got, gpu, SIZE) || got[0] != 'p' || memcmp(got, got + 1, SIZE - 1))
			errx(1, "the data is not what was sent");
		printf("%d bytes have come, all right\n", SIZE);
	}
	return pln_mr_dereg(mr) ? 1 : 0;
}
