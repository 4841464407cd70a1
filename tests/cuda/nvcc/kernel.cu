/* SPDX-License-Identifier: MIT */
/* A kernel with a name of its own */
extern "C" __global__ void pln_add_one(int *a)
{
	*a += 1;
}
