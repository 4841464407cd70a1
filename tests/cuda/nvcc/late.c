// SPDX-License-Identifier: MIT
/* Load the plugin that is named, built of static.cu, and call it */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *lib = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	void (*library_all)(void) = NULL;

	if (lib)
		library_all = (void (*)(void))dlsym(lib, "_Z11library_allv");
	if (!library_all) {
		puts(argc > 1 ? dlerror() : "no plugin is named");
		return 1;
	}
	library_all();
	return 0;
}
