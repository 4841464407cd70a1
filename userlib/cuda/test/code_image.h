/* SPDX-License-Identifier: MIT */
/* Device code as a compiler hands it over, made by hand */
#ifndef PEERLANE_TEST_CODE_IMAGE_H
#define PEERLANE_TEST_CODE_IMAGE_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

/* Binary code as nvcc makes it, but for what runs: four variables */
static const struct image {
	Elf64_Ehdr h;
	char strings[64];
	char data[16];
	Elf64_Sym symbols[6];
	Elf64_Shdr s[6];
} binary = {
#define AT(member)	offsetof(struct image, member)
#define PART(type, member)	.sh_type = type, .sh_offset = AT(member), \
				.sh_size = sizeof(((struct image *)0)->member)
#define VAR(name, index, at, n)	{ .st_name = name, .st_shndx = index, \
	.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), .st_value = at, \
	.st_size = n }
	.h = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1 },
		.e_type = ET_EXEC, .e_machine = 190, .e_version = 1,
		.e_shoff = AT(s), .e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 6, .e_shstrndx = 1,
	},
	/* 1, 12, 28: sections; 42, 46, 51, 55: variables */
	.strings = "\0.nv.global\0.nv.global.init\0.nv.constant3\0one\0zero\0two\0man",
	.data = { 0, 0, 0, 0, 11, 12, 13, 14, 21, 22 },
	.symbols = {
		{ 0 },
		VAR(42, 4, 4, 4), VAR(46, 3, 0, 8000), VAR(51, 5, 8, 2),
		VAR(55, 4, 0, 4),
		/* behind the end of its section */
		VAR(1, 4, 8, 9),
	},
	.s = {
		{ 0 },
		{ PART(SHT_STRTAB, strings) },
		{ PART(SHT_SYMTAB, symbols), .sh_link = 1,
		  .sh_entsize = sizeof(Elf64_Sym) },
		{ .sh_name = 1, .sh_type = SHT_NOBITS, .sh_size = 8000 },
		{ .sh_name = 12, PART(SHT_PROGBITS, data) },
		{ .sh_name = 28, PART(SHT_PROGBITS, data) },
	},
};

struct fat {
	uint32_t head[4];
	uint16_t kind, version;
	uint32_t header_size;
	uint64_t size;
	uint32_t unused[6];
	uint64_t flags, more[2];
	struct image elf;
};

static struct fat fat_of(const struct image *elf)
{
	return (struct fat){
		.head = { 0xba55ed50, 0x00100001,
			  sizeof(struct fat) - sizeof(((struct fat *)0)->head),
			  0 },
		.kind = 2, .version = 0x101,
		.header_size = offsetof(struct fat, elf) -
			       offsetof(struct fat, kind),
		.size = sizeof(*elf), .elf = *elf,
	};
}

struct wrapper {
	uint32_t magic, version;
	const void *image;
};

#endif /* PEERLANE_TEST_CODE_IMAGE_H */
