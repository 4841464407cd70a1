// SPDX-License-Identifier: MIT
/*
 * Drives a storage plugin of nixl as its agent does, but without one:
 *
 *	nixl PLUGIN.so vram|dram IN OUT PIECE
 *
 * IN goes into memory, and from there to OUT, each in one transfer of descriptors of
 * PIECE bytes.  IN is an open descriptor, OUT a path that the plugin opens.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#include "backend/backend_plugin.h"

static void must(bool good, const char *what)
{
	if (good)
		return;
	std::fprintf(stderr, "%s failed\n", what);
	std::exit(1);
}

static nixl_meta_dlist_t pieces(nixl_mem_t type, uintptr_t at, uint64_t dev,
				size_t size, size_t piece, nixlBackendMD *md)
{
	nixl_meta_dlist_t list(type);

	for (size_t done = 0; done < size; done += piece)
		list.addDesc(nixlMetaDesc(at + done, std::min(piece, size - done),
					  dev, md));
	return list;
}

static void transfer(nixlBackendEngine *e, nixl_xfer_op_t op,
		     const nixl_meta_dlist_t &memory, const nixl_meta_dlist_t &file)
{
	nixlBackendReqH *handle = nullptr;
	nixl_status_t s;

	must(!e->prepXfer(op, memory, file, "", handle), "prepXfer");
	s = e->postXfer(op, memory, file, "", handle);
	must(s == NIXL_IN_PROG || s == NIXL_SUCCESS, "postXfer");
	while (s == NIXL_IN_PROG)
		s = e->checkXfer(handle);
	must(s == NIXL_SUCCESS, op == NIXL_READ ? "a read" : "a write");
	must(!e->releaseReqH(handle), "releaseReqH");
}

int main(int argc, char **argv)
{
	must(argc == 6, "usage: nixl PLUGIN vram|dram IN OUT PIECE: it");
	const bool vram = std::string(argv[2]) == "vram";
	const nixl_mem_t type = vram ? VRAM_SEG : DRAM_SEG;
	const size_t piece = std::strtoull(argv[5], nullptr, 10);
	/* so that a transfer is several requests, and several batches */
	nixl_b_params_t params = {
		{ "batch_pool_size", "8" }, { "batch_limit", "4" },
		{ "max_request_size", "1048576" }, { "thread_count", "3" },
	};
	nixlBackendInitParams init;
	nixlBackendMD *memory = nullptr, *in = nullptr, *out = nullptr;
	void *lib = dlopen(argv[1], RTLD_NOW), *buf = nullptr;
	struct stat st;
	int fd = open(argv[3], O_RDONLY);

	if (!lib)
		std::fprintf(stderr, "%s\n", dlerror());
	must(lib && piece, "the start");
	must(fd >= 0 && !fstat(fd, &st), "opening IN");
	auto plugin = reinterpret_cast<nixlBackendPlugin *(*)()>(
		dlsym(lib, "nixl_plugin_init"))();
	must(plugin && plugin->api_version == NIXL_PLUGIN_API_VERSION, "nixl_plugin_init");
	init.localAgent = "test";
	init.type = plugin->get_plugin_name();
	init.customParams = &params;
	nixlBackendEngine *e = plugin->create_engine(&init);
	must(e && !e->getInitErr() && e->supportsLocal(), "create_engine");

	const size_t size = static_cast<size_t>(st.st_size);

	if (vram)
		must(!cudaSetDevice(0) && !cudaMalloc(&buf, size), "cudaMalloc");
	else
		must(!posix_memalign(&buf, 4096, size), "posix_memalign");
	const uintptr_t at = reinterpret_cast<uintptr_t>(buf);

	must(!e->registerMem(nixlBlobDesc(at, size, 0, ""), type, memory), "registerMem of memory");
	must(!e->registerMem(nixlBlobDesc(0, size, static_cast<uint64_t>(fd), ""), FILE_SEG, in),
	     "registerMem of a descriptor");
	must(!e->registerMem(nixlBlobDesc(0, size, 1000, std::string("rw,create:") + argv[4]),
			     FILE_SEG, out), "registerMem of a path");
	transfer(e, NIXL_READ, pieces(type, at, 0, size, piece, memory),
		 pieces(FILE_SEG, 0, static_cast<uint64_t>(fd), size, piece, in));
	transfer(e, NIXL_WRITE, pieces(type, at, 0, size, piece, memory),
		 pieces(FILE_SEG, 0, 1000, size, piece, out));
	must(!e->deregisterMem(out) && !e->deregisterMem(in) && !e->deregisterMem(memory),
	     "deregisterMem");
	plugin->destroy_engine(e);
	std::printf("%s %s: %zu bytes\n", plugin->get_plugin_name(),
		    plugin->get_plugin_version(), size);
	return 0;
}
