# SPDX-License-Identifier: MIT
#
# Reads shell scripts, and prints the programs that they name where a command stands: "FILE<tab>NAME", and "FILE<tab>NAME<tab>()"
# for each function that they define. Keywords are left out. What is in a variable is not known; the bodies of here-documents are
# no commands.

# The text of the script is in text, from 1 to size; at is where it is read.
function char() { return substr(text, at, 1) }

function blanks() {
	while (at <= size && (char() ~ /[ \t]/ || substr(text, at, 2) == "\\\n"))
		at += char() == "\\" ? 2 : 1
}

function line_end() {
	while (at <= size && char() != "\n")
		at++
}

# Past the bodies of the here-documents that begin behind this line
function bodies(    line, i) {
	for (i = 1; i <= nheres; i++)
		do {
			line = substr(text, at)
			sub(/\n.*/, "", line)
			at += length(line) + 1
			if (here_tabs[i])
				sub(/^\t+/, "", line)
		} while (line != here_end[i] && at <= size)
	nheres = 0
}

# Behind a "$": what it is the value of
function expansion() {
	if (substr(text, at, 2) == "((") {
		at += 2
		arithmetic()
	} else if (char() == "(") {
		at++
		code(")")
	} else if (char() == "{") {
		at++
		inside("}")
	} else
		while (char() ~ /[A-Za-z0-9_]/)
			at++
}

# To the "))" of an arithmetic expansion
function arithmetic(    depth) {
	for (depth = 2; at <= size && depth > 0; at++) {
		if (char() == "(")
			depth++
		else if (char() == ")")
			depth--
		else if (substr(text, at, 2) == "$(" && substr(text, at, 3) != "$((") {
			at += 2
			code(")")
			at--
		}
	}
}

# What is quoted, or a parameter, to its end; "$" in it stands for values
function inside(end,    c, got) {
	while (at <= size) {
		c = char()
		at++
		if (c == end)
			return got
		if (c == "\\") {
			got = got char()
			at++
		} else if (c == "$") {
			expansion()
			got = got "$"
		} else if (c == "`")
			code("`")
		else if (end == "}" && c == "\"")
			inside("\"")
		else if (end == "}" && c == "'")
			at += index(substr(text, at), "'")
		else
			got = got c
	}
	return got
}

function word(    c, got, n) {
	quoted = 0
	while (at <= size) {
		c = char()
		if (c ~ /[ \t\n;&|<>()]/ || (c == "`" && ticks))
			return got
		at++
		if (c == "'") {
			n = index(substr(text, at), "'")
			got = got substr(text, at, n - 1)
			at += n
			quoted = 1
		} else if (c == "\"") {
			got = got inside("\"")
			quoted = 1
		} else if (c == "\\") {
			got = got char()
			at++
		} else if (c == "$") {
			expansion()
			got = got "$"
		} else if (c == "`") {
			code("`")
			got = got "$"
		} else
			got = got c
	}
	return got
}

function say(name) {
	if (name ~ /^[a-z[][A-Za-z0-9._+-]*$/ || name ~ /^\/[a-z\/.-]*[a-z]$/)
		print file "\t" name
}

# To end: ")", "`" or "" for all
function code(end,    expect, cases, pattern, c, name, first, last, wraps, of) {
	expect = 1
	ticks += end == "`"
	while (at <= size) {
		blanks()
		c = char()
		if (c == "\n") {
			at++
			if (nheres)
				bodies()
			if (!pattern)
				expect = 1
			wraps = 0
			continue
		}
		if (c == "#") {
			line_end()
			continue
		}
		if (pattern) {
			# a pattern of case, or its end
			if (c == "(" || c == "|") {
				at++
				continue
			}
			if (c == ")") {
				at++
				pattern = 0
				expect = 1
				continue
			}
			first = at
			if (word() == "esac" && !quoted) {
				cases--
				pattern = expect = 0
			} else if (at == first)
				at++
			continue
		}
		if (c == end && end == "`") {
			at++
			break
		}
		if (c ~ /[;&|]/) {
			pattern = substr(text, at, 2) == ";;" && cases > 0
			at += substr(text, at, 2) == ";;" ? 2 : 1
			expect = 1
			wraps = 0
			continue
		}
		if (c == "(") {
			at++
			code(")")
			expect = 0
			continue
		}
		if (c == ")") {
			at++
			if (end == ")")
				break
			continue
		}
		if (c ~ /[<>]/) {
			redirection()
			continue
		}
		first = at
		name = word()
		if (at == first) {
			at++
			continue
		}
		if (char() ~ /[<>]/ && name ~ /^[0-9]$/)
			continue
		if (wraps && !quoted && (name ~ /^-/ || name ~ /^[0-9.]+$/ || name ~ /=/ || name ~ /^[A-Z]+$/)) {
			# of "command -v" nothing is run
			if (of == "command" && name == "-v")
				wraps = 0
			continue
		}
		# what a check is called, before what it runs
		if (wraps == 2 && quoted)
			continue
		if (!expect && !wraps) {
			if (last == "-c" && quoted && of ~ /^(sh|bash)$/)
				later[++nlater] = name
			last = name
			continue
		}
		last = name
		wraps = 0
		if (quoted) {
			expect = 0
			of = ""
		} else if (name ~ /^[A-Za-z_][A-Za-z0-9_]*=/)
			continue
		else if (name ~ /^(if|then|else|elif|do|while|until|!|\{)$/)
			expect = 1
		else if (name ~ /^(fi|done|\})$/)
			expect = 0
		else if (name == "esac") {
			cases--
			expect = 0
		} else if (name == "for") {
			expect = 0
			of = ""
		} else if (name == "case") {
			blanks()
			word()
			blanks()
			word()
			cases++
			pattern = 1
			expect = 0
		} else {
			first = at
			blanks()
			if (char() == "(") {
				# a function
				print file "\t" name "\t()"
				at++
				blanks()
				at++
				expect = 1
				continue
			}
			at = first
			say(name)
			expect = 0
			of = name
			wraps = name ~ /^(exec|command|env|sudo|nice|nohup|xargs|timeout)$/ ? 1 : name ~ /^(check|check_fails|check_false|must)$/ ? 2 : 0
		}
	}
	ticks -= end == "`"
}

function redirection(    tabs, name) {
	if (substr(text, at, 2) == "<<") {
		at += 2
		if (tabs = char() == "-")
			at++
		blanks()
		name = word()
		here_end[++nheres] = name
		here_tabs[nheres] = tabs
		return
	}
	while (char() ~ /[<>&|]/)
		at++
	blanks()
	word()
}

function script() {
	at = 1
	size = length(text)
	nheres = ticks = 0
	code("")
	# scripts in quotes
	while (nlater > 0) {
		text = later[nlater--]
		at = 1
		size = length(text)
		nheres = ticks = 0
		code("")
	}
	text = ""
}

FNR == 1 {
	if (file != "")
		script()
	file = FILENAME
}

{ text = text $0 "\n" }

END {
	if (file != "")
		script()
}
