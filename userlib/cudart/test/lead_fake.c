// SPDX-License-Identifier: MIT
/*
 * What stands for NVIDIA's runtime linked in, where there is no nvcc: functions
 * of its names, N(name) in names.inc, that return what no runtime would.
 */
#ifndef ANSWER
#define ANSWER	4242
#endif
#define N(name)								\
	__attribute__((visibility("hidden"))) int name(void);		\
	int name(void)							\
	{								\
		return ANSWER;						\
	}
#ifdef OLDER		/* what is inside had such names before */
#define FIRST	_ZN12_GLOBAL__N_132etiGetApiFunctionDescriptorTableEPi
#define LAST	_ZNK6cudart4last
#else
#define FIRST	libcudart_static_first
#define LAST	libcudart_static_last
#endif
#define N_(name)	N(name)
#ifdef OTHER		/* such a name that is of no runtime */
N(_ZN6cudart3old)
#elif !defined MOCK	/* a runtime that is not NVIDIA's */
N_(FIRST)
#endif
#include "names.inc"
#if !defined MOCK && !defined OTHER && !defined OLDER
__attribute__((visibility("hidden")))
int libcudart_static_version(int *version);
int libcudart_static_version(int *version)
{
	if (!version)
		return ANSWER;
	*version = VERSION;
	return 0;
}
#endif
#if !defined MOCK && !defined OTHER
N_(LAST)
#endif
#ifdef TWIN
__attribute__((visibility("hidden"), alias("cudaMalloc")))
int cudaMallocTwin(void);
#endif

/* What the real one asks the driver for its proof by */
extern const unsigned char lead_fake_proof[16];
const unsigned char lead_fake_proof[16] = {
	0xd4, 0x08, 0x20, 0x55, 0xbd, 0xe6, 0x70, 0x4b,
	0x8d, 0x34, 0xba, 0x12, 0x3c, 0x66, 0xe1, 0xf2,
};
