#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: NVIDIA's samples of cuFile (MagnumIO), built with our headers, run on the emulated GPU, and their data goes directly
# tags: programs guest cuda cufile p2p third-party
# tier: nightly
# timeout: 900
#
# Not those with code for the GPU, which wants nvcc: 23 to 26; nor 8, which compares error messages with NVIDIA's words; nor
# 13, whose 64 threads make 4 million calls.
. "$TOP/tests/programs/lib.sh"

program_source magnumio gds/samples/cufile_sample_utils.h
program_cuda
ssl=$(cc -print-file-name=libssl.so.3) crypto=$(cc -print-file-name=libcrypto.so.3)
need_file "$ssl" "$crypto"

build() {
	# the samples find OpenSSL's functions at run time; of its headers they need names of types
	mkdir -p types/openssl "$tree"
	cat >types/openssl/sha.h <<-'END'
		#pragma once
		#define SHA256_DIGEST_LENGTH 32
		typedef struct { unsigned long state[32]; } SHA256_CTX;
	END
	cat >types/openssl/evp.h <<-'END'
		#pragma once
		typedef struct evp_md_ctx_st EVP_MD_CTX;
		typedef struct evp_md_st EVP_MD;
		typedef struct engine_st ENGINE;
	END
	for sample in gds/samples/cufile_sample_0*.cc; do
		name=${sample##*_}
		case $name in
		008.cc | 013.cc | 023.cc | 025.cc | 026.cc) continue ;;
		esac
		# with CUDA 13 cuCtxCreate() has another parameter
		[ "$major" -lt 13 ] || sed -i 's/cuCtxCreate(&\([a-zA-Z]*\), 0/cuCtxCreate(\&\1, NULL, 0/' "$sample"
		g++ -std=c++17 -w -Itypes -I"$cuda/include" -o "$tree/${name%.cc}" "$sample" \
			-L"$cuda/lib64" -lcufile -lcuda -lcudart -lpthread -ldl
	done
}
program_build magnumio build

mkdir case case/lib case/magnumio
cp "$tree"/* "$ssl" "$crypto" case/magnumio/
ldd "$ssl" "$crypto" | awk '$1 !~ /^lib(c|m|ssl|crypto)\.so/ && $3 ~ /^\// { print $3 }' | sort -u | xargs -r cp -Lt case/magnumio
cp "$TOP/scenarios/lib/guest/guest.sh" case/lib/
cp "$TOP/tests/programs/guest/magnumio" case/run
printf 'peerlane_gpu\nnvme\n' >case/modules
echo cxx >case/extras
# 11 has 2 GiB of GPU memory, and 15 has managed memory
sed -e 's/vram=1G/vram=3G/' -e 's/coherent=off/coherent=on/' "$TOP/scenarios/topologies/same-switch.topo" >large.topo
truncate -s 256M "$OUT/disk0"
vm_image disk0 "$OUT/disk0"
vm_run guest "$PWD/large.topo" 7.2 "$PWD/case" 600
status=$?
ktap_from guest/result.log
check_eq "the guest ended well" 0 "$status"
finish
