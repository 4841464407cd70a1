#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: nixl's plugins GDS and GDS_MT, built with our headers, move files to the emulated GPU and back, directly
# tags: programs guest cuda cufile p2p third-party
# tier: nightly
# timeout: 600
#
# The plugins are nixl's, whole.  What they need of abseil and taskflow is a few lines each, of our own.
. "$TOP/tests/programs/lib.sh"

program_source nixl src/plugins/cuda_gds/gds_backend.cpp
program_cuda

build() {
	mkdir -p own/absl/log own/absl/strings own/taskflow/core "$tree"
	cat >own/absl/log/log.h <<-'END'
		#pragma once
		#include <iostream>
		struct own_line {
			bool end;
			own_line(const char *level) : end(false) { std::cerr << level << ": "; }
			~own_line() { std::cerr << std::endl; }
			own_line &WithPerror() { return *this; }
			template <class T> own_line &operator<<(const T &t) { std::cerr << t; return *this; }
		};
		#define LOG(level) own_line(#level)
		#define VLOG(level) if (true) {} else own_line("")
		#define DVLOG VLOG
	END
	cat >own/absl/log/check.h <<-'END'
		#pragma once
		#include <cstdlib>
		#include "log.h"
		#define CHECK(condition) if (condition) {} else std::abort(), own_line("")
		#define DCHECK CHECK
	END
	: >own/absl/log/initialize.h
	: >own/absl/strings/str_format.h
	cat >own/absl/strings/str_split.h <<-'END'
		#pragma once
		#include <sstream>
		#include <string>
		#include <vector>
		namespace absl {
		inline std::vector<std::string> StrSplit(const std::string &text, char by)
		{
			std::vector<std::string> parts;
			std::istringstream from(text + by);
			for (std::string part; std::getline(from, part, by); )
				parts.push_back(part);
			return parts;
		}
		}
	END
	# of messages alone; nixl has <cstring> from here
	cat >own/absl/strings/str_join.h <<-'END'
		#pragma once
		#include <cstring>
		#include <string>
		namespace absl {
		inline int PairFormatter(const char *) { return 0; }
		template <class... T> std::string StrJoin(T &&...) { return "..."; }
		}
	END
	cat >own/taskflow/taskflow.hpp <<-'END'
		#pragma once
		#include <atomic>
		#include <functional>
		#include <future>
		#include <thread>
		#include <vector>
		namespace tf {
		struct Taskflow {
			std::vector<std::function<void()>> tasks;
			template <class F> void emplace(F f) { tasks.emplace_back(f); }
		};
		struct Executor {
			size_t threads;
			explicit Executor(size_t n) : threads(n) {}
			std::future<void> run(Taskflow &flow)
			{
				return std::async(std::launch::async, [&flow, n = threads] {
					std::atomic<size_t> next{0};
					std::vector<std::thread> all;
					for (size_t i = 0; i < n; i++)
						all.emplace_back([&] {
							for (size_t k; (k = next++) < flow.tasks.size(); )
								flow.tasks[k]();
						});
					for (auto &t : all)
						t.join();
				});
			}
		};
		}
	END
	echo '#include "../taskflow.hpp"' >own/taskflow/core/executor.hpp
	flags="-std=c++20 -O1 -fPIC -w -Iown -Isrc/api/cpp -Isrc/utils -Isrc/infra -Isrc/core -Isrc/core/telemetry -I$cuda/include"
	# shellcheck disable=SC2086 # words
	for each in cuda_gds gds_mt; do
		g++ $flags -shared -o "$tree/$each.so" src/plugins/$each/*.cpp src/infra/nixl_descriptors.cpp \
			src/utils/serdes/serdes.cpp src/utils/file/*.cpp -L"$cuda/lib64" -lcufile -lcudart -lpthread
	done
	# shellcheck disable=SC2086 # words
	g++ $flags -o "$tree/nixl" "$TOP/tests/programs/nixl.cc" src/infra/nixl_descriptors.cpp src/utils/serdes/serdes.cpp \
		-L"$cuda/lib64" -lcudart -ldl
}
program_build nixl build

mkdir case case/lib case/nixl
cp "$tree"/* case/nixl/
cp "$TOP/scenarios/lib/guest/guest.sh" case/lib/
cp "$TOP/tests/programs/guest/nixl" case/run
printf 'peerlane_gpu\nnvme\n' >case/modules
echo cxx >case/extras
truncate -s 128M "$OUT/disk0"
vm_image disk0 "$OUT/disk0"
vm_run guest same-switch 7.2 "$PWD/case" 300
status=$?
ktap_from guest/result.log
check_eq "the guest ended well" 0 "$status"
finish
