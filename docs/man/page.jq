# SPDX-License-Identifier: MIT
# A manual page with the parts that come from the tool itself; reads the page's lines (jq -rR), and
#	$commands	`peerlane --describe`
#	$findings	`peerlane doctor --list --json`
# The line .\" OPTIONS COMMAND is replaced by the command's options, .\" FINDINGS by all findings of doctor.
def roff: gsub("\\\\"; "\\e") | gsub("-"; "\\-") | gsub("'"; "\\(aq");
# a sentence of the tool's: options, O_DIRECT, name(3)
def prose: roff
	| gsub("(?<o>\\\\-\\\\-[a-z]([a-z]|\\\\-[a-z])*)"; "\\fB\(.o)\\fR")
	| gsub("(?<n>[a-z_]([a-z_]|\\\\-[a-z])+)\\((?<s>[1-8])\\)"; "\\fB\(.n)\\fR(\(.s))");
def sentence: (.[:1] | ascii_upcase) + .[1:] + ".";

def term: "\\fB\\-\\-\(.name | roff)\\fR" + (if .arg then " \\fI\(.arg | ascii_downcase | roff)\\fR" else "" end);
def option:
	".TP",
	([(if .letter then "\\fB\\-\(.letter)\\fR" else empty end), term,
	  (if .alias then . + {name: .alias} | term else empty end)] | join(", ")),
	(.help | sentence | prose),
	(.more // empty | prose);
def options($name): [.[] | select(.name == $name) | .options[]] as $all
	| if $all == [] then error("peerlane has no command \($name) with options") else . end
	| reduce $all[].only as $only ([]; if index([$only]) then . else . + [$only] end)
	| .[] as $only
	| (if $only then ".PP\nFor \($only):" else empty end), ($all[] | select(.only == $only) | option);

def item(name; text): ".br\n\(name): \(text | roff)";
def all_findings:
	. as $all | reduce .[].section as $s ([]; if index($s) then . else . + [$s] end)
	| .[] as $s
	| ".SS \($s | roff)",
	  ($all[] | select(.section == $s)
	   | ".TP\n.BR \(.id | roff) \" (\(.severity))\"\n\(.what | roff).",
	     item("Why"; .why), item("Cure"; .cure), item("Cost"; .cost));

if startswith(".\\\" OPTIONS ") then ltrimstr(".\\\" OPTIONS ") as $name | $commands[0] | options($name)
elif . == ".\\\" FINDINGS" then $findings[0] | all_findings
else . end
