// SPDX-License-Identifier: MIT
/*
 * libpeerlane-cudart.so.0: programs that have NVIDIA's CUDA runtime linked in,
 * as nvcc does by default, on Peerlane's.
 *
 * The loader has this library twice in a process.  Preloaded, it is the runtime,
 * in two versions.  As an auditor (LD_AUDIT), in a name space of its own, it is
 * told of each object when that is mapped: of the program, of the libraries that
 * start with it, and of what dlopen() brings later.  It looks there for the
 * functions of a runtime linked in, by the symbol table of the file, and writes a
 * jump at the entry of each, to the function of that name and version in the
 * preloaded one.  No code of the object has run, constructors neither.  From then
 * on nothing of NVIDIA's interface runs, and the driver is asked for what is
 * documented alone.  Files are not changed, and memory is never writable and
 * executable.  The loader's lock is held in all of it.  Name spaces that dlmopen()
 * makes are left alone: the runtime is in the program's.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../core/exit_status.h"
#include "lead.h"
#include "symtab.h"

#ifndef __x86_64__
#error "the jumps are those of x86-64"
#endif

/*
 * How the linker knows what is inside NVIDIA's runtime, of today and of before.  The
 * latter are names that others may have, too; the last one is of a function that
 * stands before most of those of the interface.
 */
static const char today[] = "libcudart_static_";
static const char *const earlier[] = {
	"_ZN6cudart", "_ZNK6cudart",
	"_ZN12_GLOBAL__N_132etiGetApiFunctionDescriptorTable",
};
/*
 * What the runtime of CUDA 11 has by the same names as 12, with fewer arguments or
 * a smaller structure
 */
static const char *const changed[] = {
	"cudaFuncGetAttributes", "cudaGetDriverEntryPoint",
	"cudaGetDriverEntryPoint_ptsz",
};
/*
 * What the runtime asks the driver for its proof by, cuda/export.c; not const,
 * or this library would find it in its own constants.
 */
static unsigned char proof[16] = {
	0xd4, 0x08, 0x20, 0x55, 0xbd, 0xe6, 0x70, 0x4b,
	0x8d, 0x34, 0xba, 0x12, 0x3c, 0x66, 0xe1, 0xf2,
};

/* jmp *0(%rip), and where to: no register changes */
#define JUMP		14
static const unsigned char jump[JUMP - 8] = { 0xff, 0x25, 0, 0, 0, 0 };

struct object {
	const char *path;
	const char *file;	/* to open; the path, or what the kernel runs */
	bool program;		/* and no library */
	const struct link_map *map;
	struct symtab tab;
};

static bool log_on;
/* Of the preloaded one: where it lies, seen from here */
static ptrdiff_t runtime;
static bool runtime_here;
/* The program is mapped; before that the loader tells of other auditors */
static bool program_here;
/* Another auditor of this library does the work, or has said why nobody does */
static bool idle;
/* Of the preloaded one: an auditor is there, which sets it */
static volatile bool served;
typedef void (*fn)(void);

/* What the preloaded one has for what this one has at @p */
static void *theirs(const void *p)
{
	return (void *)((uintptr_t)p + (uintptr_t)runtime);
}

struct lead {
	const char *name;
	unsigned char *at;
	fn to;
	int prot;		/* of the memory there */
};

__attribute__((format(printf, 2, 3)))
static void say(const char *path, const char *format, ...)
{
	char text[PATH_MAX + 500];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	dprintf(STDERR_FILENO, "libpeerlane-cudart: %s: %s\n", path, text);
}

/* What is asked for cannot be done: better no program than one half led over */
#define STOP(o, ...) do {						\
	say((o)->path, __VA_ARGS__);					\
	_exit(EXIT_CANNOT_RUN);						\
} while (0)

#define STAYS	"the program keeps NVIDIA's statically linked CUDA runtime"
#define INSTEAD	"link the program with nvcc -cudart shared"

/* ---- functions that our runtime does not know ---- */

#define MAX_UNKNOWN	512	/* as many as ALL() makes */
typedef int refuse_fn(const char *name);
/* The auditor fills that of the preloaded one */
static struct unknown {
	const char *name;
	refuse_fn *refuse;
} unknown[MAX_UNKNOWN];
static unsigned int n_unknown;

#define R(n)	static int refuse_##n(void) \
		{ return unknown[0##n].refuse(unknown[0##n].name); }
#define F(n)	refuse_##n,
#define X8(X, n) X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7)
#define X64(X, n) X8(X, n##0) X8(X, n##1) X8(X, n##2) X8(X, n##3) X8(X, n##4) \
		X8(X, n##5) X8(X, n##6) X8(X, n##7)
#define ALL(X)	X64(X, 0) X64(X, 1) X64(X, 2) X64(X, 3) X64(X, 4) X64(X, 5) \
		X64(X, 6) X64(X, 7)
ALL(R)
static int (*const refusals[MAX_UNKNOWN])(void) = { ALL(F) };

/* ---- our runtime ---- */

static fn ours(int major, const char *name)
{
	const struct lead_function *f = major == 12 ? lead_functions_12 :
						      lead_functions_13;

	while (f->name && strcmp(f->name, name))
		f++;
	return f->at ? (fn)theirs(f->at) : NULL;
}

/* A function that says @name and returns the error; NULL: there are too many */
static fn refusal(int major, const char *name)
{
	struct unknown *all = theirs(unknown);
	refuse_fn *refuse = (refuse_fn *)ours(major, "__cudaPeerlaneAbsent");
	unsigned int i = 0;

	/* Objects may come and go: each name counts once in each runtime */
	while (i < n_unknown &&
	       (strcmp(all[i].name, name) || all[i].refuse != refuse))
		i++;
	if (i == MAX_UNKNOWN)
		return NULL;
	if (i == n_unknown) {
		/* The file of the name will be closed */
		all[i].name = strdup(name);
		all[i].refuse = refuse;
		if (!all[i].name)
			return NULL;
		n_unknown++;
	}
	return (fn)theirs(refusals[i]);
}

/* ---- the runtime linked in ---- */

static const char *function(const struct object *o, size_t i, Elf64_Sym *sym)
{
	const char *name = symtab_symbol(&o->tab, i, sym);

	return name && sym->st_shndx != SHN_UNDEF &&
	       ELF64_ST_TYPE(sym->st_info) == STT_FUNC ? name : NULL;
}

/* cudaX or __cudaX, in plain C */
static bool is_api(const char *name)
{
	if (!strncmp(name, "__", 2))
		name += 2;
	return !strncmp(name, "cuda", 4) && name[4] >= 'A' && name[4] <= 'Z';
}

static bool is_today(const char *name)
{
	return !strncmp(name, today, strlen(today));
}

static bool is_inside(const char *name)
{
	for (size_t i = 0; i < sizeof(earlier) / sizeof(earlier[0]); i++)
		if (!strncmp(name, earlier[i], strlen(earlier[i])))
			return true;
	return is_today(name);
}

static bool is_changed(const char *name)
{
	for (size_t i = 0; i < sizeof(changed) / sizeof(changed[0]); i++)
		if (!strcmp(name, changed[i]))
			return true;
	return false;
}

/* Program header @i of the file */
static Elf64_Phdr segment(const struct object *o, size_t i)
{
	const unsigned char *at = o->tab.data + o->tab.segments;
	Elf64_Phdr p;

	memcpy(&p, at + i * sizeof(p), sizeof(p));
	return p;
}

/* The @n bytes of code at @address as the file has them, and how they are mapped; NULL: none */
static const unsigned char *code(const struct object *o, Elf64_Addr address,
				 size_t n, Elf64_Word *flags)
{
	Elf64_Addr into;
	Elf64_Phdr p;

	for (size_t i = 0; i < o->tab.n_segments; i++) {
		p = segment(o, i);
		into = address - p.p_vaddr;
		if (p.p_type != PT_LOAD || !(p.p_flags & PF_X) ||
		    address < p.p_vaddr || into > p.p_filesz ||
		    p.p_filesz - into < n)
			continue;
		if (p.p_offset > o->tab.size || o->tab.size - p.p_offset < into ||
		    o->tab.size - p.p_offset - into < n)
			return NULL;
		*flags = p.p_flags;
		return o->tab.data + p.p_offset + into;
	}
	return NULL;
}

/*
 * The version that the function @sym stores at its argument before it returns
 * success, 1000 for each CUDA and 10 for each release of it; 0: it does not do so.
 * The runtimes of 11.1 and of 13.0 have the same instructions for that.
 */
static unsigned int version(const struct object *o, const Elf64_Sym *sym)
{
	static const unsigned char store[] = { 0xc7, 0x07 };
	static const unsigned char success[] = { 0x31, 0xc0, 0xc3 };
	const unsigned char *at, *end;
	Elf64_Word flags;
	uint32_t v;

	at = code(o, sym->st_value, sym->st_size, &flags);
	end = at + (at ? sym->st_size : 0);
	for (; end - at >= 9; at++) {
		memcpy(&v, at + 2, sizeof(v));
		if (!memcmp(at, store, 2) && !memcmp(at + 6, success, 3) &&
		    v >= 10000 && v < 100000 && v % 10 == 0)
			return v;
	}
	return 0;
}

/*
 * Which CUDA the runtime in @o is of; 0: there is none.  It is one object file,
 * so all of its functions are there if one of them is.  CUDA 12 has a second
 * version of a function that CUDA 13 has again but once; what came before 12 has
 * not, and has a function that 13 has no more.  Flags of events came with 11.1.  What
 * comes after 13 may give another meaning to any name, and is told by its number.
 * A name as of before says something only where programs of nvcc would register
 * their code.
 */
static int find(const struct object *o)
{
	bool here = false, other = false, registers = false;
	bool second = false, old = false, flags = false;
	unsigned int number = 0;
	const char *name;
	Elf64_Sym sym;

	for (size_t i = 0; i < o->tab.n_symbols; i++) {
		name = function(o, i, &sym);
		if (!name)
			continue;
		here |= is_today(name);
		other |= is_inside(name);
		registers |= !strcmp(name, "__cudaRegisterFatBinary");
		second |= !strcmp(name, "cudaGetDeviceProperties_v2");
		old |= !strcmp(name, "cudaThreadSynchronize");
		flags |= !strcmp(name, "cudaEventRecordWithFlags");
		if (!number && is_today(name))
			number = version(o, &sym);
	}
	here |= other && registers;
	if (!here)
		return 0;
	if (!second && old && !flags)
		STOP(o, "the CUDA runtime linked in is older than 11.1, and Peerlane has 12, for 11 as well, and 13; build the program by one of these");
	if (second ? number && number / 1000 != 12 : !old && number / 1000 != 13)
		STOP(o, "the CUDA runtime linked in is of version %u.%u (0.0: it does not say), and Peerlane has 12, for 11 as well, and 13; build the program by one of these",
		     number / 1000, number % 1000 / 10);
	if (second)
		return 12;
	return old ? 11 : 13;
}

struct place {
	const char *name;
	Elf64_Sym sym;
};

static int by_address(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->sym.st_value < y->sym.st_value ? -1 :
	       x->sym.st_value > y->sym.st_value;
}

/* All functions of @o, by their addresses */
static struct place *functions(const struct object *o, size_t *n)
{
	struct place *all = calloc(o->tab.n_symbols, sizeof(*all));

	if (!all)
		STOP(o, "no memory to lead its CUDA runtime over");
	*n = 0;
	for (size_t i = 0; i < o->tab.n_symbols; i++) {
		all[*n].name = function(o, i, &all[*n].sym);
		*n += all[*n].name != NULL;
	}
	qsort(all, *n, sizeof(*all), by_address);
	return all;
}

/*
 * Whether @at is NVIDIA's: then the next functions with other names, before it
 * and behind, are inside of the runtime.  The program may have such names of its
 * own, and the compiler makes one of the runtime's, static, in programs with a
 * default stream for each thread.
 */
static bool is_theirs(const struct place *all, size_t n, size_t at)
{
	size_t before = at, behind = at;

	while (before > 0 && is_api(all[before].name))
		before--;
	while (behind < n - 1 && is_api(all[behind].name))
		behind++;
	return is_inside(all[before].name) && is_inside(all[behind].name);
}

/*
 * How many bytes may be written at a function.  Its own; or, since functions
 * begin at multiples of 16, those up to the next one, if no symbol is there.
 */
static size_t room(const struct object *o, const Elf64_Sym *of)
{
	Elf64_Sym sym;

	if (of->st_size >= JUMP || of->st_value % 16)
		return of->st_size;
	for (size_t i = 0; i < o->tab.n_symbols; i++) {
		symtab_symbol(&o->tab, i, &sym);
		if (sym.st_value > of->st_value &&
		    sym.st_value < of->st_value + 16)
			return of->st_size;
	}
	return 16;
}

/* The file may be another one than what was mapped by its name */
static bool same_layout(const struct object *o)
{
	Elf64_Phdr p;

	for (size_t i = 0; i < o->tab.n_segments; i++) {
		p = segment(o, i);
		if (p.p_type == PT_DYNAMIC)
			return o->map->l_addr + p.p_vaddr ==
			       (uintptr_t)o->map->l_ld;
	}
	return false;
}

/* Where the code at @address is in memory; what is there must be the file's */
static void locate(const struct object *o, Elf64_Addr address, struct lead *l)
{
	const unsigned char *file;
	Elf64_Word flags = 0;

	file = same_layout(o) ? code(o, address, JUMP, &flags) : NULL;
	l->at = (unsigned char *)(uintptr_t)(o->map->l_addr + address);
	l->prot = PROT_EXEC | (flags & PF_R ? PROT_READ : 0) |
		  (flags & PF_W ? PROT_WRITE : 0);
	if (file && (l->prot & (PROT_READ | PROT_WRITE)) == PROT_READ &&
	    !memcmp(l->at, file, JUMP))
		return;
	STOP(o, "the code of %s in memory is not that of the file; start the program again, without what changes it",
	     l->name);
}

#define POLICY	": %m; a security policy of this machine may forbid that (SELinux: execmod); " INSTEAD

/* In whole pages: writable, not executable, for this moment */
static void write_jump(const struct object *o, const struct lead *l)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = (uintptr_t)l->at & ~(page - 1);
	size_t n = (uintptr_t)l->at + JUMP - from;

	if (mprotect((void *)from, n, PROT_READ | PROT_WRITE))
		STOP(o, "its code cannot be made writable" POLICY);
	memcpy(l->at, jump, sizeof(jump));
	memcpy(l->at + sizeof(jump), &l->to, sizeof(l->to));
	if (mprotect((void *)from, n, l->prot))
		STOP(o, "its code cannot be made executable again" POLICY);
}

/* @cuda: that the runtime is of; what 11 and 12 have in common is 12's */
static void lead_over(const struct object *o, int cuda)
{
	int major = cuda == 11 ? 12 : cuda;
	size_t n = 0, n_all, refused = 0;
	struct place *all = functions(o, &n_all);
	struct lead *leads = calloc(n_all, sizeof(*leads));

	if (!leads)
		STOP(o, "no memory to lead its CUDA runtime over");
	for (size_t i = 0; i < n_all; i++) {
		struct lead *l = &leads[n];

		l->name = all[i].name;
		if (!is_api(l->name) || !is_theirs(all, n_all, i))
			continue;
		l->to = cuda == 11 && is_changed(l->name) ? NULL :
			ours(major, l->name);
		if (!l->to) {
			l->to = refusal(major, l->name);
			refused++;
		}
		if (!l->to)
			STOP(o, "it has too many functions of the CUDA runtime that Peerlane does not know, %s one of them; " INSTEAD,
			     l->name);
		if (room(o, &all[i].sym) < JUMP)
			STOP(o, "%s has %llu bytes, too few for a jump; "
			     INSTEAD, l->name,
			     (unsigned long long)all[i].sym.st_size);
		locate(o, all[i].sym.st_value, l);
		if (n && l->at - leads[n - 1].at < JUMP)
			STOP(o, "%s and %s lie too close for jumps; " INSTEAD,
			     leads[n - 1].name, l->name);
		n++;
	}
	for (size_t i = 0; i < n; i++)
		write_jump(o, &leads[i]);
	if (log_on)
		say(o->path, "%zu functions of its CUDA %d runtime lead to Peerlane's, %zu unknown ones to a refusal",
		    n - refused, cuda, refused);
	free(leads);
	free(all);
}

/* NVIDIA's libraries that programs load know it too */
static bool shared_runtime(const char *path)
{
	const char *name = strrchr(path, '/');

	name = name ? name + 1 : path;
	return !strncmp(name, "libcudart.so", 12) ||
	       !strncmp(name, "libcuda.so", 10);
}

static void stripped(const struct object *o)
{
	const char *what = "it has NVIDIA's CUDA runtime linked in and no symbol table, so that its calls cannot be led to Peerlane's; link it with nvcc -cudart shared, or do not strip it (strip -g keeps what is needed)";

	if (!o->tab.constants || shared_runtime(o->path) ||
	    !memmem(o->tab.constants, o->tab.constants_size, proof,
		    sizeof(proof)))
		return;
	if (o->program)
		STOP(o, "%s", what);
	/* The program may well do without this part of a library */
	say(o->path, "%s; until then these calls work on NVIDIA's driver alone",
	    what);
}

static void look_at(struct object *o)
{
	int fd = open(o->file, O_RDONLY | O_CLOEXEC);
	void *file = MAP_FAILED;
	const char *wrong;
	struct stat st;
	int major;

	if (fd >= 0 && !fstat(fd, &st))
		file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE,
			    fd, 0);
	if (fd >= 0)
		close(fd);
	if (file == MAP_FAILED) {
		say(o->path, "cannot be read: %m; " STAYS);
		return;
	}
	wrong = symtab_open(&o->tab, file, (size_t)st.st_size);
	if (wrong) {
		say(o->path, "its symbols cannot be read: %s; " STAYS, wrong);
	} else if (!o->tab.symbols) {
		stripped(o);
	} else {
		major = find(o);
		if (major)
			lead_over(o, major);
	}
	munmap(file, (size_t)st.st_size);
}

/* @map: in the program's name space, of which the program is the first */
static void opened(const struct link_map *map)
{
	struct object o = {
		.path = map->l_name, .file = map->l_name, .map = map,
		.program = !map->l_prev,
	};
	char program[PATH_MAX];
	ssize_t n;

	if (o.program) {
		o.file = "/proc/self/exe";
		/* Started by hand, the loader is what the kernel runs */
		if (!getauxval(AT_BASE))
			o.file = program_invocation_name;
		n = readlink(o.file, program, sizeof(program) - 1);
		program[n > 0 ? n : 0] = '\0';
		o.path = n > 0 ? program : o.file;
	} else if (!strchr(o.path, '/')) {
		return;			/* the kernel's page has no file */
	}
	look_at(&o);
}

/* Whether @map is this library, preloaded: the same file */
static bool is_self(const struct link_map *map)
{
	struct stat a, b;
	Dl_info self;

	return dladdr(_DYNAMIC, &self) && !stat(map->l_name, &a) &&
	       !stat(self.dli_fname, &b) && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

/* @map is new in the program's name space */
static void arrived(const struct link_map *map)
{
	const struct link_map *before = map;
	volatile bool *taken;

	if (runtime_here) {
		opened(map);
	} else if (is_self(map)) {
		runtime = (char *)map->l_ld - (char *)_DYNAMIC;
		taken = theirs((const void *)&served);
		if (*taken) {
			idle = true;
			return;
		}
		*taken = true;
		runtime_here = true;
		/* The program, and what was mapped before: none has run yet */
		while (before->l_prev)
			before = before->l_prev;
		for (; before != map; before = before->l_next)
			opened(before);
	}
}

/* Preloaded alone: nothing leads the program's calls here */
__attribute__((constructor))
static void begin(void)
{
	const char *preload = secure_getenv("LD_PRELOAD"), *name;
	struct link_map *map;
	Dl_info self;
	Lmid_t space;

	if (served || !preload ||
	    !dladdr1(_DYNAMIC, &self, (void **)&map, RTLD_DL_LINKMAP) ||
	    dlinfo(map, RTLD_DI_LMID, &space) || space != LM_ID_BASE)
		return;
	name = strrchr(self.dli_fname, '/');
	name = name ? name + 1 : self.dli_fname;
	/* "peerlane run" loads it, too, to see where it is */
	if (strstr(preload, name))
		say(self.dli_fname, "LD_PRELOAD names this library and LD_AUDIT does not: " STAYS "; start the program with \"peerlane run\"");
}

/* Of rtld-audit(7) */
#define SHOWN	__attribute__((visibility("default")))

SHOWN unsigned int la_version(unsigned int version)
{
	const char *log = secure_getenv("PEERLANE_LOG");

	log_on = log && *log && strcmp(log, "0");
	return version < LAV_CURRENT ? version : LAV_CURRENT;
}

/* The first time the program and what starts with it have been mapped */
SHOWN void la_activity(uintptr_t *cookie, unsigned int flag)
{
	Dl_info self;

	(void)cookie;
	if (flag != LA_ACT_CONSISTENT || !program_here || runtime_here || idle)
		return;
	idle = true;
	if (dladdr(_DYNAMIC, &self))
		say(self.dli_fname, "LD_AUDIT names this library and LD_PRELOAD does not: " STAYS "; start the program with \"peerlane run\"");
}

SHOWN unsigned int la_objopen(struct link_map *map, Lmid_t space,
			      uintptr_t *cookie)
{
	int state;

	(void)cookie;
	if (space != LM_ID_BASE || idle)
		return 0;
	program_here = true;
	/* A thread that ended here would keep the loader's lock */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	arrived(map);
	pthread_setcancelstate(state, &state);
	return 0;			/* of its symbols nothing is asked */
}
