// SPDX-License-Identifier: MIT
/*
 * Copies a file by GPU memory with kvikio:
 *
 *	kvikio threads|streams|batches IN OUT
 *
 * threads: in tasks of 1 MiB, by kvikio's pool; streams: one asynchronous call each
 * way; batches: of 1 MiB each.  Never by kvikio's own POSIX code.
 */
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include <cuda.h>

#include <kvikio/batch.hpp>
#include <kvikio/buffer.hpp>
#include <kvikio/cufile/driver.hpp>
#include <kvikio/defaults.hpp>
#include <kvikio/file_handle.hpp>
#include <kvikio/shim/cuda.hpp>
#include <kvikio/shim/cufile.hpp>

static const std::size_t piece = 1 << 20;

static void must(bool good, const char *what)
{
	if (good)
		return;
	std::fprintf(stderr, "%s failed\n", what);
	std::exit(1);
}

static void by_batch(kvikio::FileHandle &f, char *buf, std::size_t size, CUfileOpcode_t way)
{
	for (std::size_t at = 0; at < size;) {
		kvikio::BatchHandle batch(8);
		std::vector<kvikio::BatchOp> ops;

		for (; ops.size() < 8 && at < size; at += piece)
			ops.push_back({ .file_handle = f,
					.devPtr_base = buf,
					.file_offset = static_cast<off_t>(at),
					.devPtr_offset = static_cast<off_t>(at),
					.size = std::min(piece, size - at),
					.opcode = way });
		batch.submit(ops);
		const unsigned int n = static_cast<unsigned int>(ops.size());

		for (auto &e : batch.status(n, n))
			must(e.status == CUFILE_COMPLETE, "an operation of a batch");
	}
}

static void copy(const std::string &how, const char *from, const char *to)
{
	kvikio::FileHandle in(from, "r", kvikio::FileHandle::m644, kvikio::CompatMode::OFF);
	kvikio::FileHandle out(to, "w", kvikio::FileHandle::m644, kvikio::CompatMode::OFF);
	const std::size_t size = in.nbytes();
	kvikio::cudaAPI &cuda = kvikio::cudaAPI::instance();
	std::size_t n = size;
	CUdeviceptr mem;
	CUstream stream;

	must(!in.get_compat_mode_manager().is_compat_mode_preferred(), "the choice of cuFile");
	must(!cuMemAlloc(&mem, size), "cuMemAlloc");
	char *buf = reinterpret_cast<char *>(mem);

	if (how == "threads") {
		kvikio::defaults::set_thread_pool_nthreads(4);
		kvikio::buffer_register(buf, size);
		must(in.pread(buf, size, 0, piece).get() == size, "pread");
		must(out.pwrite(buf, size, 0, piece).get() == size, "pwrite");
		kvikio::buffer_deregister(buf);
	} else if (how == "streams") {
		must(!cuda.StreamCreate(&stream, CU_STREAM_NON_BLOCKING), "a stream");
		must(in.read_async(buf, n, 0, 0, stream).check_bytes_done() == size, "read_async");
		must(out.write_async(buf, n, 0, 0, stream).check_bytes_done() == size, "write_async");
	} else {
		by_batch(in, buf, size, CUFILE_READ);
		by_batch(out, buf, size, CUFILE_WRITE);
	}
	out.close();
	in.close();
	must(!cuMemFree(mem), "cuMemFree");
}

int main(int argc, char **argv)
{
	CUcontext ctx;
	CUdevice dev;

	must(argc == 4, "usage: kvikio threads|streams|batches IN OUT: it");
	must(!cuInit(0) && !cuDeviceGet(&dev, 0) && !cuDevicePrimaryCtxRetain(&ctx, dev) &&
	     !cuCtxSetCurrent(ctx), "a context");
	try {
		must(kvikio::is_cufile_available(), "kvikio's search for libcufile");
		copy(argv[1], argv[2], argv[3]);
	} catch (const std::exception &e) {
		std::fprintf(stderr, "%s\n", e.what());
		return 1;
	}
	std::printf("cuFile %d\n", kvikio::cuFileAPI::instance().version);
	return 0;
}
