# SPDX-License-Identifier: MIT
#
# What documents tell a reader to type: code in Markdown, and commands in it that
# do not exist.  Used by tests/static/docs.sh, which says what exists:
#
#	awk -v mode=code -f docs.awk FILE.md…		FILE:LINE<tab>CODE
#	awk -v mode=commands -f docs.awk KNOWN CODE	complaints, one a line
#
# KNOWN has lines KIND<tab>NAME: goal, scenario, topology, kernel, case, tag, sub
# (of peerlane), and option or valued (with a value) as "COMMAND OPTION".

# ---- code: fenced blocks, indented blocks, and `spans` ----
mode == "code" && FNR == 1 { fenced = 0 }
mode == "code" && /^ *```/ { fenced = !fenced; next }
mode == "code" && (fenced || /^    [^ ]/) {
	print FILENAME ":" FNR "\t" $0
	next
}
mode == "code" {
	n = split($0, part, "`")
	for (i = 2; i < n; i += 2)
		print FILENAME ":" FNR "\t" part[i]
}
mode == "code" { next }

# ---- commands ----
FNR == NR {
	known[$0] = 1
	next
}

function has(kind, name) {
	return (kind "\t" name) in known
}

function wrong(what) {
	print at ": " what
}

# What stands for something of the reader's own
function stands_for(word) {
	return word ~ /^[A-Z]/ || word ~ /[$*…<{]|\.\.\./ || word ~ /^(\.\/|\/)?(my-|mine|copy\.)/
}

# The next argument of the command that begins at word i; "" at its end
function option(command, opt,    value) {
	value = opt ~ /=/
	sub(/=.*/, "", opt)
	if (opt ~ /^(-h|--help)$/)
		return 0
	if (has("valued", command " " opt))
		return !value
	if (!has("option", command " " opt) && opt !~ /…/)
		wrong(command " has no option " opt)
	return 0
}

function must(kind, name) {
	if (stands_for(name))
		return
	sub(/[,.:]$/, "", name)
	if (!has(kind, name))
		wrong("there is no " kind " " name)
}

function check(i,    command, opt, bare, w) {
	command = word[i]
	if (command == "peerlane") {
		if (word[++i] ~ /^-/) {
			option(command, word[i])
			return
		}
		if (word[i] == ";" || stands_for(word[i]))
			return
		must("sub", word[i])
		command = command " " word[i]
	}
	while (++i <= nwords && (w = word[i]) != ";") {
		if (command == "make") {
			if (w == "-C")
				return
			if (w !~ /^-/ && w !~ /=/)
				must("goal", w)
		} else if (w ~ /^--?[a-z]/) {
			opt = w
			if (!option(command, opt))
				continue
			w = word[++i]
			sub(/^--/, "", opt)
			if (opt ~ /^(scenario|topology|kernel)$/)
				must(opt, w)
		} else if (command == "scenarios/run" || command == "scenarios/demo")
			must("scenario", w)
		else if (command == "scenarios/draw")
			must("topology", w)
		else if (command == "tests/run")
			must("case", w)
		else if (command == "scenarios/try")
			return
	}
}

{
	at = $0
	sub(/\t.*/, "", at)
	code = $0
	sub(/^[^\t]*\t/, "", code)
	sub(/^ *[a-z]*[#$] /, "", code)
	sub(/[ \t]#( .*)?$/, "", code)
	gsub(/[;|&()<>'"`]/, " ; ", code)
	sub(/[ \t]+$/, "", code)
	nwords = split(code, word, /[ \t]+/)
	for (i = 1; i <= nwords; i++) {
		first = i == 1 || word[i - 1] ~ /^(;|)$/ || word[i - 1] ~ /=/
		sub(/^\.\//, "", word[i])
		if (word[i] == "make" && first || word[i] == "peerlane" && i < nwords && \
		    word[i + 1] ~ /^[a-z-]/ || word[i] ~ /^(scenarios\/(run|try|draw|matrix|demo|report)|tests\/run)$/)
			check(i)
		path = word[i]
		sub(/[.,:]$/, "", path)
		if (path ~ /^(docs|hw-model|images|kernel|scenarios|tests|userlib)\/[A-Za-z0-9_.\/-]+$/ && \
		    path !~ /[A-Z][A-Z]|\/(my-|mine)/ && !has("case", path) && \
		    system("test -e '" path "'"))
			wrong("there is no " path)
	}
}
