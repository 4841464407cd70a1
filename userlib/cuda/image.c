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

/* A copy of the @n bytes at @at, if @size bytes have them */
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

/* Names, the last of which has an end, too */
static bool is_text(const uint8_t *data, const Elf64_Shdr *s)
{
	return s->sh_type == SHT_STRTAB && s->sh_size &&
	       !data[s->sh_offset + s->sh_size - 1];
}

/* Where variables are in memory of the GPU; the first section of each name counts */
static const char *const homes[] = {
	".nv.global", ".nv.global.init", ".nv.constant3",
};
#define HOMES	(sizeof(homes) / sizeof(homes[0]))
_Static_assert(HOMES + 1 == DRV_IMAGE_COPIES, "each, and the names");

struct elf {
	size_t index[HOMES];		/* 0: there is none */
	Elf64_Shdr home[HOMES];
	Elf64_Shdr symbols, strings;
};

/* Which of homes[] the section is; HOMES: none */
static size_t home_of(const uint8_t *data, const Elf64_Shdr *names,
		      const Elf64_Shdr *s)
{
	size_t i = 0, n;

	for (; i < HOMES; i++) {
		n = strlen(homes[i]) + 1;
		if (s->sh_name < names->sh_size &&
		    n <= names->sh_size - s->sh_name &&
		    !memcmp(data + names->sh_offset + s->sh_name, homes[i], n))
			break;
	}
	return i;
}

/* False: it has no variables that could be read */
static bool find_sections(const uint8_t *data, uint64_t size, struct elf *elf)
{
	Elf64_Shdr names, s;
	Elf64_Ehdr h;
	size_t k;

	if (!take(data, size, 0, &h, sizeof(h)) ||
	    h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_machine != MACHINE_CUDA ||
	    h.e_shentsize != sizeof(Elf64_Shdr) || h.e_shoff > MAX_IMAGE ||
	    !section(data, size, &h, h.e_shstrndx, &names) ||
	    !is_text(data, &names))
		return false;
	for (size_t i = 1; i < h.e_shnum; i++) {
		if (!section(data, size, &h, i, &s))
			continue;
		if (s.sh_type == SHT_SYMTAB) {
			if (!elf->symbols.sh_type)
				elf->symbols = s;
			continue;
		}
		k = home_of(data, &names, &s);
		if (k < HOMES && !elf->index[k]) {
			elf->index[k] = i;
			elf->home[k] = s;
		}
	}
	return elf->symbols.sh_type &&
	       section(data, size, &h, elf->symbols.sh_link, &elf->strings) &&
	       is_text(data, &elf->strings);
}

/* False: no memory */
static bool copy(const uint8_t *data, const Elf64_Shdr *s, void **out)
{
	if (s->sh_type == SHT_NOBITS || !s->sh_size)
		return true;
	*out = malloc(s->sh_size);
	if (*out)
		memcpy(*out, data + s->sh_offset, s->sh_size);
	return *out;
}

/* True: @sym is a variable in GPU memory, @var */
static bool variable_of(const struct drv_image *image, const struct elf *elf,
			const Elf64_Sym *sym, struct drv_var *var)
{
	size_t i = 0, n;

	if (ELF64_ST_TYPE(sym->st_info) != STT_OBJECT || !sym->st_size ||
	    sym->st_shndx == SHN_UNDEF || sym->st_name >= elf->strings.sh_size)
		return false;
	while (i < HOMES && elf->index[i] != sym->st_shndx)
		i++;
	if (i == HOMES)
		return false;
	n = elf->home[i].sh_size;
	if (sym->st_value > n || sym->st_size > n - sym->st_value)
		return false;
	*var = (struct drv_var){
		.name = (const char *)image->copies[HOMES] + sym->st_name,
		.size = sym->st_size,
		.data = image->copies[i] ?
			(const uint8_t *)image->copies[i] + sym->st_value : NULL,
		.managed = sym->st_other & OTHER_MANAGED,
	};
	return *var->name;
}

static bool add(struct drv_image *image, struct drv_var var)
{
	struct drv_var *vars = image->vars;

	/* A power of two: as many again */
	if (!(image->n & (image->n - 1))) {
		vars = reallocarray(vars, image->n ? 2 * image->n : 1,
				    sizeof(*vars));
		if (!vars)
			return false;
		image->vars = vars;
	}
	vars[image->n++] = var;
	return true;
}

/* @size: at most; false: no memory.  What cannot be read has no variables. */
static bool read_elf(struct drv_image *image, const uint8_t *data,
		     uint64_t size)
{
	struct elf elf = { 0 };
	struct drv_var var;
	Elf64_Sym sym;

	if (!find_sections(data, size, &elf))
		return true;
	for (size_t i = 0; i < HOMES; i++)
		if (!copy(data, &elf.home[i], &image->copies[i]))
			return false;
	if (!copy(data, &elf.strings, &image->copies[HOMES]))
		return false;
	image->known = true;
	for (uint64_t at = 0; at + sizeof(sym) <= elf.symbols.sh_size;
	     at += sizeof(sym)) {
		memcpy(&sym, data + elf.symbols.sh_offset + at, sizeof(sym));
		if (variable_of(image, &elf, &sym, &var) && !add(image, var))
			return false;
	}
	return true;
}

/*
 * The first binary code in it that is not compressed.  A program that asks for
 * __CUDA_ARCH__ may have other variables in its code for another GPU; these are
 * not found.
 */
static bool read_fat(struct drv_image *image, const uint8_t *data,
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

static bool read_binary(struct drv_image *image, const void *data,
			uint64_t size)
{
	const struct wrapper *w = data;
	uint32_t magic;

	memcpy(&magic, data, sizeof(magic));
	if (magic == MAGIC_WRAPPER) {
		if (!w->image)
			return true;
		data = w->image;
		memcpy(&magic, data, sizeof(magic));
	}
	return magic == MAGIC_ELF ? read_elf(image, data, size) :
	       magic == MAGIC_FAT ? read_fat(image, data, size) : true;
}

bool drv_image_is_binary(const void *data, uint64_t size)
{
	const char *p = data;
	uint32_t magic;

	/* Text may be shorter than the number: byte by byte */
	if ((size && size < sizeof(magic)) ||
	    !memchr("\x7f\x50\xb1", p[0], 3) || !p[1] || !p[2])
		return false;
	memcpy(&magic, data, sizeof(magic));
	/* The pointer in a wrapper is one of this process, if it is not of a file */
	return magic == MAGIC_FAT || magic == MAGIC_ELF ||
	       (magic == MAGIC_WRAPPER && !size);
}

struct drv_image *drv_image_new(const void *data, uint64_t size)
{
	struct drv_image *image = calloc(1, sizeof(*image));
	bool ok;

	if (!image)
		return NULL;
	atomic_init(&image->refs, 1);
	if (drv_image_is_binary(data, size)) {
		ok = read_binary(image, data, size ? size : MAX_IMAGE);
	} else {
		image->ptx = size ? strndup(data, size) : strdup(data);
		ok = image->ptx;
	}
	if (ok)
		return image;
	drv_image_put(image);
	return NULL;
}

struct drv_image *drv_image_ref(struct drv_image *image)
{
	atomic_fetch_add(&image->refs, 1);
	return image;
}

void drv_image_put(struct drv_image *image)
{
	if (!image || atomic_fetch_sub(&image->refs, 1) != 1)
		return;
	for (size_t i = 0; i < DRV_IMAGE_COPIES; i++)
		free(image->copies[i]);
	free(image->vars);
	free(image->ptx);
	free(image);
}
