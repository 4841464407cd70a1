#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: kvikio, built with our headers, moves files to the emulated GPU and back: by threads, in streams and in batches, directly
# tags: programs guest cuda cufile p2p third-party
# tier: nightly
# timeout: 900
#
# kvikio is whole, but for reading from the network.  What it needs of rapids_logger is a few lines of our own, which log nothing.
. "$TOP/tests/programs/lib.sh"

program_source thread-pool include/BS_thread_pool.hpp
pool=$source
program_source kvikio cpp/src/file_handle.cpp
program_cuda

build() {
	mkdir -p own/rapids_logger own/kvikio "$tree"
	cat >own/rapids_logger/logger.hpp <<-'END'
		#pragma once
		#include <cstdlib>
		#include <memory>
		#include <string>
		#include <vector>
		namespace rapids_logger {
		enum class level_enum { trace, debug, info, warn, error, critical, off };
		struct sink { virtual ~sink() = default; };
		using sink_ptr = std::shared_ptr<sink>;
		struct null_sink_mt : sink {};
		struct stderr_sink_mt : sink {};
		struct basic_file_sink_mt : sink { basic_file_sink_mt(std::string const &, bool) {} };
		struct logger {
			logger(std::string, std::vector<sink_ptr>) {}
			void set_pattern(std::string) {}
			void set_level(level_enum) {}
		};
		}
	END
	cat >own/kvikio/logger_macros.hpp <<-'END'
		#pragma once
		#define KVIKIO_LOG_DEBUG(...) ((void)0)
		#define KVIKIO_LOG_ERROR(...) ((void)0)
	END
	flags="-std=gnu++20 -O1 -fPIC -w -DKVIKIO_CUFILE_FOUND -DKVIKIO_CUFILE_VERSION_API_FOUND -Iown -Icpp/include"
	flags="$flags -I$pool/include -isystem $cuda/include"
	# shellcheck disable=SC2086 # words
	for each in batch bounce_buffer buffer compat_mode compat_mode_manager cufile/config cufile/driver defaults error file_handle \
		file_utils http_status_codes logger mmap stream utils detail/bounce_buffer_cache detail/concurrent_request_limiter \
		detail/env detail/event detail/nvtx detail/posix_io detail/stream detail/utils shim/cuda shim/cufile shim/utils; do
		g++ $flags -c -o "$(echo "$each" | tr / -).o" "cpp/src/$each.cpp"
	done
	# shellcheck disable=SC2086 # words
	g++ $flags -o "$tree/kvikio" "$TOP/tests/programs/kvikio.cc" ./*.o -L"$cuda/lib64" -lcuda -ldl -lpthread
	# for make bench-gpu; a host need not have this C++ library
	# shellcheck disable=SC2086 # words
	g++ $flags -shared -o "$tree/libkvikio-posix.so" "$TOP/tests/gpu/kvikio-posix.cc" ./*.o -ldl -lpthread \
		-static-libstdc++ -static-libgcc -Wl,--no-undefined
}
program_build kvikio build

mkdir case case/lib case/kvikio
cp "$tree"/* case/kvikio/
cp "$TOP/scenarios/lib/guest/guest.sh" case/lib/
cp "$TOP/tests/programs/guest/kvikio" case/run
cp "$BUILD/userlib/tests/cufile-bench" case/kvikio/
printf 'peerlane_gpu\nnvme\n' >case/modules
echo cxx >case/extras
truncate -s 128M "$OUT/disk0"
vm_image disk0 "$OUT/disk0"
vm_run guest same-switch 7.2 "$PWD/case" 300
status=$?
ktap_from guest/result.log
check_eq "the guest ended well" 0 "$status"
finish
