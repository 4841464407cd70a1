# SPDX-License-Identifier: MIT
# The words of peerlane.bash-completion, from `peerlane --describe`, as a shell function: what may follow
#	""			commands
#	"help"			the commands again
#	"COMMAND"		words of the command, or its options
#	"COMMAND WORD"		options after this word
#	"COMMAND --OPTION"	values, also after its letter: words, or FILE, DIR, NIC, ID; "-" is anything
#	"COMMAND @"		what is no option: FILE, COMMAND
def names: "--\(.name)", (.alias // empty | "--\(.)");
def line($words): "	\"\(.)\") echo \"\($words | join(" "))\" ;;";
def options($part): [.options[] | select((.only // $part) | contains($part)) | names] + ["--help"];
def kind: if .words then .words elif .arg | IN("FILE", "RECORD") then "FILE"
	elif .arg | IN("DIR", "NIC", "ID") then .arg else "-" end;
"_peerlane_words() {\n	case $1 in",
(. as $all | "" | line([$all[].name] + ["help", "--describe", "--help", "--version"])),
(. as $all | "help" | line([$all[].name])),
(.[] | . as $command | .name as $name
 | (if .parts then
	(.parts / " " | . as $parts | $name | line($parts + ["--help"])),
	(.parts / " " | .[] | . as $part | "\($name) \(.)" | line($command | options($part)))
    else
	$name | line($command | options(""))
    end),
   (.operands // empty | . as $operands | "\($name) @" | line([$operands])),
   (.options[] | select(.arg) | kind as $kind | names, (.letter // empty | "-\(.)") | "\($name) \(.)" | line([$kind]))),
"	esac\n}\n"
