// SPDX-License-Identifier: MIT
/*
 * Device code as the program hands it over: which variables it has, how large they
 * are, and what they hold at first.
 *
 * That stands in the symbol table of binary code (ELF), alone or in a fat binary.
 * Of text (PTX) and of what is compressed the variables are not known.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "image.h"

/* First words of binary code: fat binaries, their wrapper, ELF */
#define MAGIC_FAT	0xba55ed50u
#define MAGIC_WRAPPER	0x466243b1u
#define MAGIC_ELF	0x464c457fu

#define MACHINE_CUDA	190
/* In st_other: the program reaches it, too (__managed__) */
#define OTHER_MANAGED	4
#define MAX_IMAGE	(1ull << 32)

struct fat_header {
	uint32_t magic;
	uint16_t version;
	uint16_t header_size;
	uint64_t size;			/* of what follows the header */
};

#define FAT_ELF		2
#define FAT_COMPRESSED	0xa000		/* by LZ4 or zstd */
struct fat_entry {
	uint16_t kind;
	uint16_t version;
	uint32_t header_size;
	uint64_t size;			/* of what follows this header */
	uint32_t compressed_size;
	uint32_t unused[5];
	uint64_t flags;
};

struct wrapper {
	uint32_t magic;
	uint32_t version;
	const void *image;
};

/* A copy of [@at, @at + sizeof(*@out)), if @size bytes have that */
static bool take(const uint8_t *data, uint64_t size, uint64_t at, void *out,
		 size_t n)
{
	if (at > size || n > size - at)
		return false;
	memcpy(out, data + at, n);
	return true;
}

/* The section's bytes are there, or it has none in the file */
static bool section(const uint8_t *data, uint64_t size, const Elf64_Ehdr *h,
		    size_t i, Elf64_Shdr *s)
{
	return i < h->e_shnum &&
	       take(data, size, h->e_shoff + i * sizeof(*s), s, sizeof(*s)) &&
	       (s->sh_type == SHT_NOBITS ||
		(s->sh_offset <= size && s->sh_size <= size - s->sh_offset));
}

static bool text_at(const uint8_t *data, const Elf64_Shdr *table, uint64_t at,
		    const char **out)
{
	if (table->sh_type != SHT_STRTAB || at >= table->sh_size)
		return false;
	*out = (const char *)data + table->sh_offset + at;
	return memchr(*out, 0, table->sh_size - at);
}

/* True: @var is a variable in GPU memory; its name and data are in @data yet */
static bool variable_of(const uint8_t *data, uint64_t size,
			const Elf64_Ehdr *h, const Elf64_Shdr *strings,
			const Elf64_Sym *sym, struct pln_var *var)
{
	Elf64_Shdr names, s;
	const char *where;

	if (ELF64_ST_TYPE(sym->st_info) != STT_OBJECT || !sym->st_size ||
	    !section(data, size, h, h->e_shstrndx, &names) ||
	    !section(data, size, h, sym->st_shndx, &s) ||
	    !text_at(data, &names, s.sh_name, &where) ||
	    (strcmp(where, ".nv.global") && strcmp(where, ".nv.global.init") &&
	     strcmp(where, ".nv.constant3")) ||
	    sym->st_value > s.sh_size || sym->st_size > s.sh_size - sym->st_value)
		return false;
	var->size = sym->st_size;
	var->managed = sym->st_other & OTHER_MANAGED;
	var->data = s.sh_type == SHT_NOBITS ? NULL :
		    (uint8_t *)(uintptr_t)(data + s.sh_offset + sym->st_value);
	return text_at(data, strings, sym->st_name, (const char **)&var->name);
}

static bool own(struct pln_var *var)
{
	uint8_t *data = NULL;
	char *name = strdup(var->name);

	if (var->data) {
		data = malloc(var->size);
		if (data)
			memcpy(data, var->data, var->size);
	}
	if (!name || (var->data && !data)) {
		free(name);
		free(data);
		return false;
	}
	var->name = name;
	var->data = data;
	return true;
}

static bool add(struct pln_image *image, struct pln_var var)
{
	struct pln_var *vars = reallocarray(image->vars, image->n + 1,
					    sizeof(*vars));

	if (!vars)
		return false;
	image->vars = vars;
	if (!own(&var))
		return false;
	vars[image->n++] = var;
	return true;
}

/* @size: at most; false: no memory.  What cannot be read has no variables. */
static bool read_elf(struct pln_image *image, const uint8_t *data,
		     uint64_t size)
{
	Elf64_Shdr symbols, strings;
	struct pln_var var;
	Elf64_Ehdr h;
	Elf64_Sym sym;

	if (!take(data, size, 0, &h, sizeof(h)) ||
	    h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_machine != MACHINE_CUDA ||
	    h.e_shentsize != sizeof(Elf64_Shdr) || h.e_shoff > MAX_IMAGE)
		return true;
	for (size_t i = 0; i < h.e_shnum; i++) {
		if (!section(data, size, &h, i, &symbols) ||
		    symbols.sh_type != SHT_SYMTAB ||
		    !section(data, size, &h, symbols.sh_link, &strings))
			continue;
		image->known = true;
		for (uint64_t at = 0; at + sizeof(sym) <= symbols.sh_size;
		     at += sizeof(sym)) {
			memcpy(&sym, data + symbols.sh_offset + at, sizeof(sym));
			if (variable_of(data, size, &h, &strings, &sym, &var) &&
			    !add(image, var))
				return false;
		}
	}
	return true;
}

/* The first binary code in it that is not compressed: all have the same variables */
static bool read_fat(struct pln_image *image, const uint8_t *data,
		     uint64_t size)
{
	struct fat_header h;
	struct fat_entry e;
	uint64_t at;

	if (!take(data, size, 0, &h, sizeof(h)) || h.size > MAX_IMAGE)
		return true;
	if (size > h.header_size + h.size)
		size = h.header_size + h.size;
	for (at = h.header_size; take(data, size, at, &e, sizeof(e));
	     at += e.header_size + e.size) {
		if (e.header_size < sizeof(e) || e.header_size > size - at ||
		    e.size > size - at - e.header_size)
			break;
		if (e.kind == FAT_ELF && !(e.flags & FAT_COMPRESSED))
			return read_elf(image, data + at + e.header_size,
					e.size);
	}
	return true;
}

static bool read_binary(struct pln_image *image, const void *data,
			uint64_t size)
{
	struct wrapper w;
	uint32_t magic;

	memcpy(&magic, data, sizeof(magic));
	if (magic == MAGIC_WRAPPER) {
		if (!take(data, size, 0, &w, sizeof(w)) || !w.image)
			return true;
		data = w.image;
		size = MAX_IMAGE;
		memcpy(&magic, data, sizeof(magic));
	}
	return magic == MAGIC_ELF ? read_elf(image, data, size) :
	       magic == MAGIC_FAT ? read_fat(image, data, size) : true;
}

bool pln_image_is_binary(const void *data)
{
	const char *p = data;
	uint32_t magic;

	/* Text may be shorter than the number: byte by byte */
	if (!memchr("\x7f\x50\xb1", p[0], 3) || !p[1] || !p[2])
		return false;
	memcpy(&magic, data, sizeof(magic));
	return magic == MAGIC_FAT || magic == MAGIC_WRAPPER ||
	       magic == MAGIC_ELF;
}

struct pln_image *pln_image_new(const void *data, uint64_t size)
{
	struct pln_image *image = calloc(1, sizeof(*image));
	bool ok;

	if (!image)
		return NULL;
	atomic_init(&image->refs, 1);
	if (pln_image_is_binary(data)) {
		ok = read_binary(image, data, size ? size : MAX_IMAGE);
	} else {
		image->ptx = strdup(data);
		ok = image->ptx;
	}
	if (ok)
		return image;
	pln_image_put(image);
	return NULL;
}

struct pln_image *pln_image_ref(struct pln_image *image)
{
	atomic_fetch_add(&image->refs, 1);
	return image;
}

void pln_image_put(struct pln_image *image)
{
	if (!image || atomic_fetch_sub(&image->refs, 1) != 1)
		return;
	for (size_t i = 0; i < image->n; i++) {
		free(image->vars[i].name);
		free(image->vars[i].data);
	}
	free(image->vars);
	free(image->ptx);
	free(image);
}
