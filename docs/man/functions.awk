# SPDX-License-Identifier: MIT
#
# Manual pages of functions, from the comments of headers:
#
#	awk -v folder=build/man -f functions.awk peerlane/link.h ...
#
# writes folder/NAME.3 for each function, and folder/peerlane_link.h.3 from the header's own comment, and prints the names.
# (doxygen would do it too, and bring libclang and LLVM into the build root; the kernel's kernel-doc brings the kernel.)
#
# A comment is that of kernel-doc, with these parts:
#
#	NAME - what it does				a function, or "struct NAME - ..."
#	@parameter: text				likewise the fields of a structure
#	text, name(3), pln_name(), @parameter		paragraphs
#	- TERM: text, or -EINVAL: text			lists; further lines begin with two blanks
#	<tab>code
#	Return: Example: Notes: Environment: See also:	sections
#
# A page ends with the structures that the function's parameters have.

function bold(text) { return "\\fB" text "\\fR" }
function italic(text) { return "\\fI" text "\\fR" }

function roff(text) {
	gsub(/\\/, "\\e", text)
	gsub(/-/, "\\-", text)
	gsub(/'/, "\\(aq", text)
	return text
}

# @parameter, pln_function(), page(3)
function prose(text,    out, word) {
	text = roff(text)
	while (match(text, /@[A-Za-z_]+|(pln|cuFile)[A-Za-z0-9_]+\(\)|[A-Za-z_.\\-]*[A-Za-z0-9]\([1-8]\)/)) {
		word = substr(text, RSTART, RLENGTH)
		out = out substr(text, 1, RSTART - 1)
		text = substr(text, RSTART + RLENGTH)
		if (word ~ /^@/)
			out = out italic(substr(word, 2))
		else if (word ~ /\(\)$/)
			out = out bold(substr(word, 1, length(word) - 2)) "(3)"
		else
			out = out bold(substr(word, 1, length(word) - 3)) substr(word, length(word) - 2)
	}
	return out text
}

function flush() {
	if (code)
		page = page ".fi\n"
	code = list = 0
}

# Tabs as blanks
function expand(line,    out) {
	while (match(line, /\t/)) {
		out = out substr(line, 1, RSTART - 1)
		out = out substr("        ", 1, 8 - length(out) % 8)
		line = substr(line, RSTART + 1)
	}
	return out line
}

# One line of a comment's text
function add(line,    colon) {
	if (line ~ /^\t/) {
		headed = 0
		if (!code)
			page = page (gap ? ".PP\n" : "") ".nf\n"
		else if (gap)
			page = page "\n"
		page = page "    " roff(expand(substr(line, 2))) "\n"
		code = 1
		list = gap = 0
		return
	}
	if (line == "") {
		gap = !headed
		return
	}
	if (line ~ /^Since (cuFile )?[0-9]/) {
		flush()
		page = page ".SH HISTORY\n"
		gap = 0
	} else if (match(line, /^(Return|Example|Notes|Environment|See also):/)) {
		flush()
		colon = RLENGTH
		page = page ".SH " toupper(substr(line, 1, colon - 1)) (line ~ /^Return/ ? " VALUE" : "") "\n"
		line = substr(line, colon + 2)
		gap = 0
		headed = line == ""
		if (headed)
			return
	}
	headed = 0
	if (line ~ /^- .*: / || (gap || list) && line ~ /^(-E[A-Z]|CUDA_ERROR_)/) {
		flush()
		sub(/^- /, "", line)
		colon = index(line, ":")
		page = page ".TP\n" bold(roff(substr(line, 1, colon - 1))) "\n"
		line = substr(line, colon + 2)
		list = 1
	} else if (gap || code) {
		flush()
		page = page ".PP\n"
	} else if (list)
		sub(/^  /, "", line)
	gap = 0
	line = prose(line)
	page = page (line ~ /^\./ ? "\\&" : "") line "\n"
}

function add_text(text,    line, n, i) {
	n = split(text, line, "\n")
	for (i = 1; i < n; i++)
		add(line[i])
	flush()
	gap = 0
}

function begin(name, what) {
	page = ".\\\" SPDX-License-Identifier: MIT\n.\\\" Made by functions.awk from " header "\n" \
		".TH " name " 3 \"\" Peerlane \"Peerlane manual\"\n.SH NAME\n" name " \\- " roff(what) "\n.SH SYNOPSIS\n.nf\n"
	if (header == "cuda_ext.h")
		page = page bold("#include <cuda.h>") "\n"
	page = page bold("#include <" (header == "cufile.h" ? "" : "peerlane/") header ">") "\n"
}

function end(name) {
	printf "%s", page >(folder "/" name ".3")
	close(folder "/" name ".3")
	print name
}

# @names of what was read last, as a list
function list_of(n, names, texts,    i, out) {
	for (i = 1; i <= n; i++)
		out = out ".TP\n" italic(names[i]) "\n" prose(texts[i]) "\n"
	return out
}

function structures(text,    rest, name, out) {
	for (rest = text; match(rest, /struct pln_[a-z_]+/); ) {
		name = substr(rest, RSTART + 7, RLENGTH - 7)
		rest = substr(rest, RSTART + RLENGTH)
		if (!(name in fields) || index(shown, " " name " "))
			continue
		shown = shown " " name " "
		out = out ".SS struct " roff(name) "\n" prose(struct_what[name]) ".\n" fields[name] structures(struct_body[name])
	}
	return out
}

function function_page(    name, prototype, i, see, structs) {
	name = subject
	begin(name, what)
	prototype = declaration
	gsub(/PLN_CU_RESULT/, "CUresult", prototype)
	gsub(/PLN_CU_PTR/, "CUdeviceptr", prototype)
	gsub(/[ \t\n]+/, " ", prototype)
	for (i = 1; i <= params; i++)
		sub("[ *]" param[i] "[,)]", "&\001", prototype)
	prototype = roff(prototype)
	gsub(/[A-Za-z0-9_]+[,)]\001/, "\\fI&", prototype)
	gsub(/,\001 /, "\\fB,\n    ", prototype)
	gsub(/\)\001/, "\\fB)", prototype)
	sub(/ $/, "", prototype)
	page = page ".PP\n\\fB" prototype "\\fR\n.fi\n"
	if (header !~ /^(cuda_ext|file)\.h$/)
		page = page ".PP\nLink with " italic(header == "cufile.h" ? "\\-lcufile" : "\\-lpeerlane") ".\n"
	if (params)
		page = page ".SH PARAMETERS\n" list_of(params, param, param_text)
	see = index(body, "See also:")
	page = page ".SH DESCRIPTION\n"
	if (body !~ /^[^\n]/ || body ~ /^Return:/)
		page = page toupper(substr(what, 1, 1)) prose(substr(what, 2)) ".\n"
	add_text(substr(body, 1, see ? see - 1 : length(body)))
	shown = ""
	structs = structures(declaration)
	if (structs != "")
		page = page ".SH STRUCTURES\n" structs
	if (see)
		add_text(substr(body, see))
	end(name)
}

function header_page(    name, what) {
	name = (header == "cufile.h" ? "" : "peerlane_") header
	what = body
	sub(/\.( |\n).*/, "", what)
	gsub(/\n/, " ", what)
	begin(name, tolower(substr(what, 1, 1)) substr(what, 2))
	page = page ".fi\n.SH DESCRIPTION\n"
	add_text(body)
	end(name)
}

FNR == 1 {
	header = FILENAME
	sub(/.*\//, "", header)
	overview = 1
	comment = 0
	declaration = ""
	wanted = ""
}

/^\/\*\*?$/ {
	comment = 1
	kernel_doc = $0 == "/**"
	params = fields_now = 0
	body = subject = ""
	next
}
comment && /^ \*\/$/ {
	comment = 0
	if (!kernel_doc && overview)
		header_page()
	overview = 0
	if (kernel_doc) {
		wanted = subject
		declaration = ""
	}
	next
}
comment {
	line = $0
	sub(/^ \* ?/, "", line)
	if ($0 ~ /^ \*\t/)
		line = "\t" substr($0, 4)
	if (kernel_doc && subject == "") {
		subject = what = line
		sub(/ - .*/, "", subject)
		sub(/^.* - /, "", what)
		fielding = 1
	} else if (kernel_doc && fielding && line ~ /^@[A-Za-z_]+: /) {
		param[++params] = substr(line, 2, index(line, ":") - 2)
		param_text[params] = substr(line, index(line, ":") + 2)
	} else if (kernel_doc && fielding && params && line ~ /^\t/)
		param_text[params] = param_text[params] " " substr(line, 2)
	else if (!(fielding && line == "")) {
		fielding = 0
		body = body line "\n"
	} else
		fielding = 0
	next
}
wanted != "" {
	declaration = declaration $0 "\n"
	if (wanted ~ /^struct /) {
		if ($0 !~ /^};/)
			next
		name = substr(wanted, 8)
		struct_what[name] = toupper(substr(what, 1, 1)) substr(what, 2)
		struct_body[name] = declaration
		fields[name] = list_of(params, param, param_text)
		if (body != "") {
			page = ""
			add_text(body)
			fields[name] = fields[name] ".PP\n" page
		}
	} else if ($0 !~ /;$/)
		next
	else
		function_page()
	wanted = ""
}
