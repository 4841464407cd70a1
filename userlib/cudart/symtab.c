// SPDX-License-Identifier: MIT
#include <string.h>

#include "symtab.h"

/* @n bytes at @offset, or NULL: not all of them are in the file */
static const void *part(const struct symtab *tab, size_t offset, size_t n)
{
	if (offset > tab->size || n > tab->size - offset)
		return NULL;
	return tab->data + offset;
}

/* Section @i; its header need not be aligned in the file */
static Elf64_Shdr section(const unsigned char *headers, size_t i)
{
	Elf64_Shdr s;

	memcpy(&s, headers + i * sizeof(s), sizeof(s));
	return s;
}

/* Bytes that end with a 0, so that each name in it ends inside */
static const char *strings(const struct symtab *tab, const Elf64_Shdr *s)
{
	const char *p = part(tab, s->sh_offset, s->sh_size);

	if (s->sh_type != SHT_STRTAB || !p || !s->sh_size ||
	    p[s->sh_size - 1])
		return NULL;
	return p;
}

const char *symtab_open(struct symtab *tab, const void *data, size_t size)
{
	Elf64_Shdr s, of_names = { 0 };
	const unsigned char *headers;
	const char *section_names;
	Elf64_Ehdr e;

	memset(tab, 0, sizeof(*tab));
	tab->data = data;
	tab->size = size;
	if (size < sizeof(e) || memcmp(data, ELFMAG, SELFMAG))
		return "it is no ELF file";
	memcpy(&e, data, sizeof(e));
	if (e.e_ident[EI_CLASS] != ELFCLASS64 ||
	    e.e_ident[EI_DATA] != ELFDATA2LSB || e.e_machine != EM_X86_64)
		return "it is not for x86-64";
	if (e.e_phnum && (e.e_phentsize != sizeof(Elf64_Phdr) ||
			  !part(tab, e.e_phoff,
				(size_t)e.e_phnum * sizeof(Elf64_Phdr))))
		return "its program headers lie outside of it";
	tab->segments = e.e_phoff;
	tab->n_segments = e.e_phnum;
	if (!e.e_shoff || !e.e_shnum)
		return NULL;		/* it may be without sections */
	if (e.e_shentsize != sizeof(s))
		return "its section headers have an unknown size";
	headers = part(tab, e.e_shoff, (size_t)e.e_shnum * sizeof(s));
	if (!headers)
		return "its section headers lie outside of it";
	if (e.e_shstrndx >= e.e_shnum)
		return "its sections have no names";
	of_names = section(headers, e.e_shstrndx);
	section_names = strings(tab, &of_names);
	if (!section_names)
		return "its sections have no names";
	for (size_t i = 0; i < e.e_shnum; i++) {
		s = section(headers, i);
		if (s.sh_type == SHT_PROGBITS && s.sh_name < of_names.sh_size &&
		    !strcmp(section_names + s.sh_name, ".rodata")) {
			tab->constants = part(tab, s.sh_offset, s.sh_size);
			tab->constants_size = s.sh_size;
			if (!tab->constants)
				return "its constants lie outside of it";
		}
		if (s.sh_type != SHT_SYMTAB)
			continue;
		if (s.sh_entsize != sizeof(Elf64_Sym))
			return "its symbols have an unknown size";
		tab->symbols = part(tab, s.sh_offset, s.sh_size);
		tab->n_symbols = s.sh_size / sizeof(Elf64_Sym);
		if (!tab->symbols)
			return "its symbols lie outside of it";
		if (s.sh_link >= e.e_shnum)
			return "its symbols have no names";
		s = section(headers, s.sh_link);
		tab->names = strings(tab, &s);
		tab->names_size = s.sh_size;
		if (!tab->names)
			return "its symbols have no names";
	}
	return NULL;
}

const char *symtab_symbol(const struct symtab *tab, size_t i, Elf64_Sym *sym)
{
	memcpy(sym, tab->symbols + i * sizeof(*sym), sizeof(*sym));
	if (!sym->st_name || sym->st_name >= tab->names_size)
		return NULL;
	return tab->names + sym->st_name;
}
