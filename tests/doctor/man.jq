# SPDX-License-Identifier: MIT
# The part FINDINGS of peerlane-doctor(1), from `peerlane doctor --list --json`:
#	peerlane doctor --list --json | jq -rf man.jq
def roff: gsub("\\\\"; "\\e") | gsub("-"; "\\-") | gsub("'"; "\\(aq");
def item(name; text): ".br\n\(name): \(text | roff)";
group_by(.section) as $all
| reduce .[].section as $s ([]; if index($s) then . else . + [$s] end)
| .[] as $s
| ".SS \($s | roff)",
  ($all[] | select(.[0].section == $s) | .[]
   | ".TP\n.BR \(.id | roff) \" (\(.severity))\"\n\(.what | roff).",
     item("Why"; .why), item("Cure"; .cure), item("Cost"; .cost))
