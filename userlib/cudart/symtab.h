/* SPDX-License-Identifier: MIT */
/*
 * The symbol table of an x86-64 ELF file, out of a buffer that holds the file.
 * Whatever is in the buffer, nothing outside of it is read.
 */
#ifndef PEERLANE_CUDART_SYMTAB_H
#define PEERLANE_CUDART_SYMTAB_H

#include <elf.h>
#include <stddef.h>

struct symtab {
	const unsigned char *data;	/* the file, the caller's */
	size_t size;
	const unsigned char *symbols;	/* of .symtab; NULL: it has none */
	size_t n_symbols;
	const char *names;		/* their names; the last byte is 0 */
	size_t names_size;
	size_t segments;		/* where the program headers are */
	size_t n_segments;
	const unsigned char *constants;	/* .rodata; NULL: it has none */
	size_t constants_size;
};

/* NULL, or what is wrong with the file.  @tab points into @data. */
const char *symtab_open(struct symtab *tab, const void *data, size_t size);

/* Symbol @i (below n_symbols) and its name; NULL: it has none */
const char *symtab_symbol(const struct symtab *tab, size_t i, Elf64_Sym *sym);

#endif
