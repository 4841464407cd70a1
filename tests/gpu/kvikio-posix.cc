// SPDX-License-Identifier: MIT
/*
 * kvikio's own way to read and write files, without libcufile, behind the names of
 * libcufile's functions: so that tests/gpu/bench-gpu can measure it like another
 * library.  See docs/reference/programs.md for how it is built.
 */
#include <cerrno>
#include <fcntl.h>
#include <exception>
#include <string>

#include <cufile.h>
#include <kvikio/file_handle.hpp>

namespace {
const CUfileError_t good = {CU_FILE_SUCCESS, CUDA_SUCCESS};
}

extern "C" {

CUfileError_t cuFileDriverOpen()
{
	return good;
}

CUfileError_t cuFileDriverClose_v2()
{
	return good;
}

CUfileError_t cuFileGetVersion(int *version)
{
	*version = 0;
	return good;
}

CUfileError_t cuFileBufRegister(const void *, size_t, int)
{
	return good;
}

CUfileError_t cuFileBufDeregister(const void *)
{
	return good;
}

CUfileError_t cuFileHandleRegister(CUfileHandle_t *fh, CUfileDescr_t *descr)
{
	std::string path = "/proc/self/fd/" + std::to_string(descr->handle.fd);

	try {
		/* "r+" needs the right to write, "r" is for the others */
		bool writes = (fcntl(descr->handle.fd, F_GETFL) & O_ACCMODE) != O_RDONLY;

		*fh = new kvikio::FileHandle(path, writes ? "r+" : "r", 0644,
					     kvikio::CompatMode::ON);
	} catch (const std::exception &) {
		return {CU_FILE_INVALID_FILE_TYPE, CUDA_SUCCESS};
	}
	return good;
}

void cuFileHandleDeregister(CUfileHandle_t fh)
{
	delete static_cast<kvikio::FileHandle *>(fh);
}

ssize_t cuFileRead(CUfileHandle_t fh, void *dev, size_t size, off_t off, off_t dev_off)
{
	try {
		return static_cast<ssize_t>(static_cast<kvikio::FileHandle *>(fh)->read(
			dev, size, static_cast<size_t>(off), static_cast<size_t>(dev_off)));
	} catch (const std::exception &) {
		errno = EIO;
		return -1;
	}
}

ssize_t cuFileWrite(CUfileHandle_t fh, const void *dev, size_t size, off_t off, off_t dev_off)
{
	try {
		return static_cast<ssize_t>(static_cast<kvikio::FileHandle *>(fh)->write(
			dev, size, static_cast<size_t>(off), static_cast<size_t>(dev_off)));
	} catch (const std::exception &) {
		errno = EIO;
		return -1;
	}
}

}
