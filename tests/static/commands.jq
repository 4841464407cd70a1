# SPDX-License-Identifier: MIT
#
# Of a syntax tree of shell, from shfmt --to-json: {program: NAME} for each word where a command stands, {function: NAME} for each
# definition, and {script: TEXT} for each word that a shell runs as a script, to be parsed in its turn.

# Commands that run what stands behind their options and so many words, and those of their options that take the next word
def wrappers: {
	exec: [0, "-a"], command: [0, ""], env: [0, "-[uC]"], sudo: [0, "-[ug]"], nice: [0, "-n"], nohup: [0, ""], setsid: [0, ""],
	xargs: [0, "-[0rtx]*[adEILnPs]"], timeout: [1, "-[ks]"], flock: [1, "-[wE]"], unshare: [0, "-[SG]"],
	setpriv: [0, "--(pdeathsig|reuid|regid)"], check: [1, ""], check_false: [1, ""], check_fails: [2, ""], must: [0, ""]
};

# A word as the command sees it; the value of an expansion is not known, and "$_" stands for it
def text:
	[(.Parts // [])[] | if IN(.Type; "Lit", "SglQuoted") then .Value
		elif .Type == "DblQuoted" then text | gsub("\\\\(?<quoted>[$`\"\\\\])"; .quoted)
		else "$_" end] | add // "";

# A command's words, from a list of them
def runs:
	.[0] as $name | select($name) | {program: $name},
	if $name == "command" and .[1] == "-v" then empty
	elif wrappers[$name] then
		wrappers[$name] as [$words, $takes] | .[1:] |
		until(length == 0 or (.[0] | test("^-|^[A-Za-z0-9_]+=") | not); .[if .[0] | test("^(\($takes))$") then 2 else 1 end:]) |
		.[$words:] | runs
	elif $name == "find" then .[indices("-exec")[] + 1:] | runs
	elif $name == "trap" then {script: .[1]}
	elif IN($name; "sh", "bash") then .[1:] | until(length < 2 or (.[0] | test("^-[a-z]*c$")); .[1:]) | {script: .[1]}
	else empty end;

.. | objects |
	if .Type == "FuncDecl" then {function: .Name.Value}
	elif .Type == "CallExpr" then [(.Args // [])[] | text] | runs
	else empty end
