// SPDX-License-Identifier: MIT
/*
 * The reader of symbol tables, on files that are not what they should be.  Each
 * is in memory of just its size, so that the sanitizers see any step outside.
 *
 *	symtab_unit FILE	a program with a symbol table
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../symtab.h"
#include "../../cuda/test/ktap.h"

static unsigned char *good;
static size_t good_size;

/* Every symbol, name and constant is read; how many there were */
static size_t read_all(const struct symtab *tab)
{
	volatile unsigned char seen = 0;
	const char *name;
	size_t n = 0;
	Elf64_Sym sym;

	for (size_t i = 0; i < tab->n_symbols; i++) {
		name = symtab_symbol(tab, i, &sym);
		seen = (unsigned char)(seen + (name ? strlen(name) : 0));
		n += name && !strcmp(name, "main");
	}
	for (size_t i = 0; i < tab->constants_size; i += 64)
		seen = (unsigned char)(seen + tab->constants[i]);
	return n;
}

/* What is said of a copy of @size bytes in which @n bytes at @at are @value */
static const char *with(size_t size, size_t at, const void *value, size_t n)
{
	unsigned char *copy = malloc(size ? size : 1);
	struct symtab tab;
	const char *wrong;

	if (!copy)
		abort();
	memcpy(copy, good, size);
	if (at <= size && n <= size - at)
		memcpy(copy + at, value, n);
	wrong = symtab_open(&tab, copy, size);
	if (!wrong)
		read_all(&tab);
	free(copy);
	return wrong;
}

static bool says(const char *what, const char *want)
{
	if (!what == !want && (!want || strstr(what, want)))
		return true;
	printf("# \"%s\" and not \"%s\"\n", what ? what : "nothing",
	       want ? want : "nothing");
	return false;
}

/* Where the header of section @type is in the file, the first or the one named */
static size_t header(uint32_t type, const char *name)
{
	const Elf64_Ehdr *e = (const void *)good;
	const Elf64_Shdr *s = (const void *)(good + e->e_shoff);
	const char *names = (const char *)good + s[e->e_shstrndx].sh_offset;

	for (size_t i = 0; i < e->e_shnum; i++)
		if (s[i].sh_type == type &&
		    (!name || !strcmp(names + s[i].sh_name, name)))
			return e->e_shoff + i * sizeof(*s);
	abort();
}

#define E(field)	offsetof(Elf64_Ehdr, field)
#define S(field)	offsetof(Elf64_Shdr, field)
#define PUT(at, type, value) \
	with(good_size, at, &(type){ value }, sizeof(type))

static void fields(void)
{
	const Elf64_Ehdr *e = (const void *)good;
	size_t symbols = header(SHT_SYMTAB, NULL);
	size_t constants = header(SHT_PROGBITS, ".rodata");
	size_t names = header(SHT_STRTAB, ".strtab");
	size_t of_sections = e->e_shoff + e->e_shstrndx * sizeof(Elf64_Shdr);
	const Elf64_Shdr *s = (const void *)(good + names);
	size_t last = s->sh_offset + s->sh_size - 1;

	ktap(says(PUT(0, char, 'X'), "no ELF"), "no ELF file");
	ktap(says(PUT(EI_CLASS, char, ELFCLASS32), "x86-64"), "32 bits");
	ktap(says(PUT(EI_DATA, char, ELFDATA2MSB), "x86-64"), "big endian");
	ktap(says(PUT(E(e_machine), uint16_t, EM_AARCH64), "x86-64"),
	     "another processor");
	ktap(says(PUT(E(e_shoff), uint64_t, 0), NULL), "no sections at all");
	ktap(says(PUT(E(e_shentsize), uint16_t, 63), "unknown size"),
	     "section headers of another size");
	ktap(says(PUT(E(e_shoff), uint64_t, good_size - 8), "outside") &&
	     says(PUT(E(e_shoff), uint64_t, UINT64_MAX - 7), "outside"),
	     "section headers outside of the file");
	ktap(says(PUT(E(e_shstrndx), uint16_t, 0xfffe), "no names") &&
	     says(PUT(of_sections + S(sh_offset), uint64_t, UINT64_MAX),
		  "no names") &&
	     says(PUT(of_sections + S(sh_type), uint32_t, SHT_NULL),
		  "no names"), "sections without names");
	ktap(says(PUT(symbols + S(sh_name), uint32_t, UINT32_MAX), NULL) &&
	     says(PUT(constants + S(sh_name), uint32_t, UINT32_MAX), NULL),
	     "a section whose name is outside of the names");
	ktap(says(PUT(symbols + S(sh_entsize), uint64_t, 0), "unknown size"),
	     "symbols of another size");
	ktap(says(PUT(symbols + S(sh_offset), uint64_t, good_size), "lie out") &&
	     says(PUT(symbols + S(sh_size), uint64_t, UINT64_MAX), "lie out"),
	     "symbols outside of the file");
	ktap(says(PUT(symbols + S(sh_link), uint32_t, UINT32_MAX), "no names") &&
	     says(PUT(names + S(sh_size), uint64_t, 0), "no names") &&
	     says(PUT(names + S(sh_size), uint64_t, UINT64_MAX), "no names") &&
	     says(PUT(last, char, 'x'), "no names"),
	     "symbols without names, or names without an end");
	ktap(says(PUT(constants + S(sh_size), uint64_t, good_size), "lie out"),
	     "constants outside of the file");
}

int main(int argc, char **argv)
{
	FILE *f = argc == 2 ? fopen(argv[1], "rb") : NULL;
	struct symtab tab;
	uint32_t lot = 1;
	const char *wrong;

	if (!f || fseek(f, 0, SEEK_END) || (good_size = (size_t)ftell(f)) == 0)
		return 2;
	rewind(f);
	good = malloc(good_size);
	if (!good || fread(good, 1, good_size, f) != good_size)
		return 2;
	fclose(f);
	wrong = symtab_open(&tab, good, good_size);
	ktap(says(wrong, NULL) && read_all(&tab) == 1 && tab.constants,
	     "a good file has its symbols and constants");
	fields();
	/* Cut anywhere: its section headers are at its end */
	wrong = NULL;
	for (size_t size = 0; size < good_size; size += 1 + size / 64)
		if (!with(size, 0, good, 0))
			wrong = "nothing is said";
	ktap(says(wrong, NULL), "a file that was cut is refused, anywhere");
	/* Wrong bytes in its headers, by lot, always the same */
	for (int i = 0; i < 20000; i++) {
		const Elf64_Ehdr *e = (const void *)good;
		size_t at;
		unsigned char b;

		lot = lot * 1664525 + 1013904223;
		at = (lot >> 8) % (sizeof(*e) +
				   e->e_shnum * sizeof(Elf64_Shdr));
		b = (unsigned char)(lot >> 3);
		if (at >= sizeof(*e))
			at += e->e_shoff - sizeof(*e);
		(void)with(good_size, at, &b, 1);
	}
	ktap(true, "wrong bytes in headers lead nowhere outside");
	free(good);
	return ktap_end();
}
