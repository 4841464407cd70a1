// SPDX-License-Identifier: MIT
/*
 * Functions of the program's own, though their names are the runtime's, as the
 * compiler makes one of programs with a default stream for each thread, or look
 * as if they were.
 */
static __attribute__((noinline)) int cudaLaunchKernel(int a)
{
	__asm__ volatile("" : "+r"(a));
	return 3 * a;
}

int cudaProgramsOwn(int a);
__attribute__((noinline)) int cudaProgramsOwn(int a)
{
	__asm__ volatile("" : "+r"(a));
	return a + 1;
}

int lead_own(void);
int lead_own(void)
{
	return cudaLaunchKernel(2) + cudaProgramsOwn(0);
}
