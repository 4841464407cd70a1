# SPDX-License-Identifier: MIT
#
# Commands in the code of documents that do not exist: awk -f docs.awk KNOWN FILE.md…
#
# KNOWN has lines KIND<tab>NAME: goal, scenario, topology, kernel, case, sub (of peerlane), and option or valued (with a
# value) as "COMMAND OPTION".  The code of a document is its fenced blocks, indented blocks and `spans`.

FNR == NR {
	known[$0] = 1
	next
}

function wrong(what) {
	print FILENAME ":" FNR ": " what
}

# Words in capitals, with $ or …, or my-… stand for something of the reader's own.
function must(kind, name) {
	if (name ~ /^[A-Z]|[$*…<{]|\.\.\.|^(\.?\/)?(my-|mine|copy\.)/)
		return
	sub(/[,.:]$/, "", name)
	if (!((kind "\t" name) in known))
		wrong("there is no " kind " " name)
}

# The command that begins at word[i]
function command(i,    name, opt, operand) {
	name = word[i]
	if (name == "peerlane" && word[i + 1] !~ /^-/) {
		must("sub", word[++i])
		name = name " " word[i]
	}
	operand["make"] = "goal"
	operand["scenarios/run"] = operand["scenarios/demo"] = "scenario"
	operand["scenarios/draw"] = "topology"
	operand["tests/run"] = "case"
	while (++i <= words && word[i] != ";") {
		if (word[i] ~ /^--?[a-z]/ && name != "make") {
			opt = word[i]
			if (("valued\t" name " " opt) in known) {
				i++
				if (opt ~ /^--(scenario|topology|kernel)$/)
					must(substr(opt, 3), base(word[i]))
			} else if (opt !~ /^(-h|--help)$|…/)
				must("option", name " " opt)
		} else if (word[i] == "-C" || name == "scenarios/try")
			return
		else if (name in operand && word[i] !~ /^-|=/)
			must(operand[name], base(word[i]))
	}
}

# A machine may have overrides, NAME,KEY=VALUE...
function base(word) {
	sub(/,.*/, "", word)
	return word
}

function code(text,    i, path) {
	sub(/^ *[a-z]*[#$] /, "", text)
	sub(/[ \t]#( .*)?$/, "", text)
	gsub(/[;|&()<>'"`]/, " ; ", text)
	sub(/[ \t]+$/, "", text)
	words = split(text, word, /[ \t]+/)
	for (i = 1; i <= words; i++) {
		sub(/^\.\//, "", word[i])
		path = word[i]
		sub(/[.,:]$/, "", path)
		if (path ~ /^(docs|hw-model|images|kernel|scenarios|tests|userlib)\/[A-Za-z0-9_.\/-]+$/ && \
		    path !~ /[A-Z][A-Z]|\/(my-|mine)/ && !(("case\t" path) in known) && system("test -e '" path "'"))
			wrong("there is no " path)
	}
	for (i = 1; i <= words; i++)
		if (word[i] ~ /^(scenarios\/(run|try|draw|matrix|demo|report)|tests\/run)$/ || \
		    (i == 1 || word[i - 1] ~ /^(;|)$|=/) && word[i] ~ /^(make|peerlane)$/ && word[i + 1] ~ /^[a-z-]/)
			command(i)
}

FNR == 1 { fenced = 0 }
/^ *```/ { fenced = !fenced; next }
fenced || /^    [^ ]/ { code($0); next }
{
	spans = split($0, span, "`")
	for (s = 2; s < spans; s += 2)
		code(span[s])
}
