#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the report page says what the results say, and refuses what it cannot draw
# tier: check
# timeout: 120
# shellcheck disable=SC2016 # jq programs
. "$TOP/scenarios/lib/case.sh"
need_tool jq xmllint

cat > good.json <<'E2'
{"scenario": "one", "title": "a <b> & \"c\"", "topology": "same-switch",
 "kernel": "7.2", "accel": "tcg", "verdict": "pass", "seconds": 2.5,
 "transfers": [
  {"what": "read", "path": "p2p", "bytes": 1073741824, "host_bytes": 0, "cpu_seconds": 0.5, "reason": "r1"},
  {"what": "write", "path": "bounce", "bytes": 2147483648, "host_bytes": 3221225472, "cpu_seconds": 1, "reason": "r2"}],
 "routes": [
  {"from": "nvme0", "to": "gpu0", "bytes": 1048576, "what": "peer"},
  {"from": "gpu0", "to": "memory", "bytes": 2097152}],
 "counted": {"copy": {"modelled_requesters": {"nvme0": {"transfers": 12, "payload_bytes": 4194304,
  "queued_ns": 5, "elapsed_ns": 2000000, "bytes_per_second": 2097152000, "late": 7}},
  "links": [{"link": "sw0.1", "below": "nvme0", "modelled": {
   "up": {"when": {"first_ns": 5001000, "slice_ns": 1000000, "busy_ns": [500000, 250000, 0, 125000, 0, 0]}},
   "down": {"when": {"first_ns": 6001000, "slice_ns": 2000000, "busy_ns": [0, 500000]}}}},
   {"link": "sw0.0", "below": "gpu0", "modelled": null}]}},
 "devices": [
  {"name": "machine", "kind": "q35", "parent": "-", "memory": "1G", "cpu": "max", "iommu": "passthrough"},
  {"name": "rp0", "kind": "root-port", "parent": "pcie.0"},
  {"name": "sw0", "kind": "switch", "parent": "rp0", "ports": "2", "model": "peerlane", "acs": "on"},
  {"name": "gpu0", "kind": "gpu", "parent": "sw0.0", "vram": "1G", "bar1": "1G", "coherent": "on"},
  {"name": "nvme0", "kind": "nvme", "parent": "sw0.1", "image": "disk0"},
  {"name": "rp1", "kind": "root-port", "parent": "pcie.0"},
  {"name": "gpu1", "kind": "gpu", "parent": "rp1", "vram": "2G", "bar1": "64M", "coherent": "off"}],
 "links": [
  {"link": "rp0", "below": "sw0", "up": 2097152, "down": 1024, "peer": {"up": 0, "down": 0},
   "redirected": {"up": 1048576, "down": 0}, "host": {"up": 1048576, "down": 1024}, "refused": 0, "other": 0, "from": "port counters"},
  {"link": "sw0.0", "below": "gpu0", "up": 5242880, "down": 1048576, "peer": {"up": null, "down": 1048576},
   "redirected": {"up": null, "down": 0}, "host": {"up": 1048576, "down": 0}, "refused": 0, "other": 0, "from": "port counters"},
  {"link": "sw0.1", "below": "nvme0", "up": 4194304, "down": 0, "peer": {"up": 3145728, "down": 0},
   "redirected": {"up": 1048576, "down": 0}, "host": {"up": 0, "down": 0}, "refused": 7168, "other": 0, "from": "port counters",
   "modelled": {"bytes_per_second": 7876923076, "latency_ns": 150,
    "up": {"transfers": 9, "payload_bytes": 4194304, "wire_bytes": 4719616, "busy_ns": 599168, "queued_ns": 1200000},
    "down": {"transfers": 3, "payload_bytes": 0, "wire_bytes": 24, "busy_ns": 3, "queued_ns": 0}}},
  {"link": "rp1", "below": "gpu1", "up": null, "down": null, "peer": {"up": null, "down": null},
   "redirected": {"up": null, "down": null}, "host": {"up": null, "down": null}, "refused": null, "other": null, "from": null}]}
E2
report=$TOP/scenarios/report

# counts of whole lines or parts, so that a doubled or lost element shows
has() { grep -qF -- "$2" "$1"; }
hasnt() { ! grep -qF -- "$2" "$1"; }

check "a good result gives a page" "$report" page.html good.json
check "text is escaped" has page.html 'a &lt;b&gt; &amp; &quot;c&quot;'
jq '.title = "printf \u0027a\\n\u0027\t|\ncat"' good.json >odd.json
check "a title of several lines" "$report" odd.html odd.json
check "... has blanks for them, and its backslashes" has odd.html "printf 'a\\n' | cat<"
check "bytes of the table" has page.html '<td class="n">1.0 GiB</td>'
check "bytes through host memory" has page.html '<td class="n">3.0 GiB</td>'
check "CPU seconds are per GiB" has page.html '<td class="n">0.50</td>'
check "the reason is there" has page.html '<td>r2</td>'
check "what came of it is there" has page.html '<strong>1 run: 1 pass.</strong>'
check "when it was made" grep -qE 'This page was made on 20[0-9-]{8} [0-9:]{5} UTC' page.html
check "and with which version" has page.html "UTC with version $("$TOP/images/build/version" --commit)"
check "the paths that were taken have words" has page.html '<b>p2p</b>: straight'
check "each" has page.html '<b>bounce</b>: staged'
check "where it ran, and for how long" has page.html \
	'<p class="dim">Topology <code>same-switch</code>, guest kernel 7.2, accelerator tcg, 2.5 s.</p>'
check "the name of a column of numbers stands above them" has page.html '<th scope="col" class="n">through host memory</th>'
check "and no others" hasnt page.html '<b>coherent</b>'
check "without colours the kinds of lines differ, too" has page.html \
	'path.redirected{stroke:var(--root);stroke-dasharray:24 3}path.host{stroke:var(--host);stroke-dasharray:8 3}'

# the picture
check "peer bytes are a stroke of their link" has page.html \
	'<title>nvme0: 3.0 MiB between devices, turned round in a switch</title>'
check "redirected bytes are another" has page.html \
	'<title>nvme0: 1.0 MiB between devices, through the root complex</title>'
check "redirected bytes go on through the root port" has page.html \
	'<title>rp0: 1.0 MiB between devices, through the root complex</title>'
check "peer bytes do not go above the switch" hasnt page.html \
	'<title>sw0: 3.0 MiB between devices, turned round in a switch</title>'
check "bytes whose way is not known are said to be between devices" has page.html \
	'<title>gpu0: 4.0 MiB between devices</title>'
check "the largest is the thickest" has page.html \
	'<path class="unknown" stroke-width="9.0"'
check "a quarter of it is that much thinner" has page.html \
	'<path class="redirected" stroke-width="3.4"'
check_eq "each link that carried something has its words" 3 \
	"$(grep -c '<text class="bytes".*→' page.html)"
check "bytes up" has page.html '>← 4.0 MiB<'
check "a link that nobody counted says so" has page.html '>not counted</text>'
check "so host memory's bytes are not known either" hasnt page.html \
	'<title>memory:'
jq '.links |= map(select(.below != "gpu1"))' good.json > known.json
check "with all root ports known" "$report" known.html known.json
check "host memory has their sum" has known.html \
	'<title>memory: 1.0 MiB from or to host memory</title>'
check_eq "and words too" 4 "$(grep -c '<text class="bytes".*→' known.html)"
check "the GPU is told apart" has page.html '>gpu0 (coherent)</text>'
check "the machine's IOMMU is there" has page.html '>CPU max, IOMMU pt<'

# the table beside it
check "a link's row" has page.html \
	'<td>sw0.1 – nvme0</td><td class="n">4.0 MiB</td><td class="n">0 B</td><td class="n">3.0 MiB<br/>0 B</td><td class="n">1.0 MiB<br/>0 B</td><td class="n">0 B<br/>0 B</td><td class="n">7.0 KiB</td><td>port counters</td>'
check "what is not known is not 0" has page.html \
	'<td>rp1 – gpu1</td><td class="n">not counted</td>'
check "modelled links have a table of their own, which says so" has page.html \
	'<caption>Modelled links: '
check "with their figures" has page.html \
	'<td>sw0.1 – nvme0</td><td class="n">7.88 GB/s, 150 ns</td><td class="n">4.0 MiB<br/>0 B</td><td class="n">4.5 MiB<br/>24 B</td><td class="n">0.60 ms<br/>0.00 ms</td><td class="n">1.20 ms<br/>0.00 ms</td>'
check_eq "and no other link is in it" 1 "$(grep -c 'GB/s, 150 ns' page.html)"
check "modelled bandwidth, and how often the emulator was late" has page.html \
	'<li>copy, nvme0: modelled 2.10 GB/s, 4.0 MiB in modelled 2.00 ms; the emulator was late with 7 of 12 transfers</li>'
check "when they were busy is a drawing of its own, which says so" has page.html '<h4>Modelled time line: copy</h4>'
# 5 ms in all on 480 units from 200: the second half of 4 ms in the last slice, half as busy; a row is 22 high
check_eq "a bar is where its slice is, and as high as it was busy" "200.0 6.0 96.0 22.0, 296.0 17.0 96.0 11.0, 488.0 22.5 96.0 5.5, 488.0 45.0 192.0 11.0," \
	"$(sed -nE 's/.*<rect x="([0-9.]*)" y="([0-9.]*)" width="([0-9.]*)" height="([0-9.]*)"\/>/\1 \2 \3 \4,/p' page.html | xargs)"
check "the busiest slice is named" has page.html '>modelled 5.00 ms; the highest bar is 50 % busy</text>'
check "its words say it, too" has page.html 'sw0.1 – nvme0, up: busy for 0.88 ms (18 %), between 0.00 ms and 4.00 ms. sw0.1 – nvme0, down: busy for 0.50 ms (10 %), between 1.00 ms and 5.00 ms.'
"$report" --text good.json >text
check "a terminal has it" has text 'modelled time line of one, copy: 5.00 ms, 0.0833 ms in a column; busy . : - = + * #, # is 50 %'
check_eq "... with a column for each sixtieth" "|############============            ::::::::::::            | |                                    ========================|" \
	"$(sed -n 's/.*sw0.1 - nvme0[^|]*//p' text | sed 'N; s/\n/ /')"
jq '(.. | .when? // empty).busy_ns |= map(if . > 0 then 400 else 0 end)' good.json >idle.json
"$report" --text idle.json >idle
check "no line is drawn to the scale of next to nothing" has idle 'modelled time line of one, copy: 5.00 ms, each link busy for less than 0.05 % of it'
check_false "... at all" grep -q 'sw0.1 - nvme0, up  *|' idle
check_false "nothing is fetched from elsewhere" \
	grep -qE 'src=|href=.h|@import|url\(|<script' page.html
well_formed() { xmllint --noout --nonet "$1"; }
check "the page is well-formed" well_formed page.html
sed "s,</caption>,," page.html > bad.html
check_eq "... which is seen" 1 "$(well_formed bad.html 2>/dev/null; echo $?)"
rm bad.html

check_eq "what scrolls can be reached by keys and has a name" \
	"$(grep -c '<div class="wide"' page.html)" \
	"$(grep -c '<div class="wide" role="region" tabindex="0" aria-label="[^"]' page.html)"
check_eq "a drawing has its words for those who do not see it" \
	"1.0 MiB from nvme0 to gpu0 (peer). 2.0 MiB from gpu0 to memory. rp0: 1.0 MiB between devices, through the root complex. rp0: 1.0 MiB from or to host memory." \
	"$(sed -n 's/.*<desc id="d1h0-d">\(.*host memory\.\) sw0: .*/\1/p' page.html)"

jq '.transfers = [] | .links = []' good.json > none.json
check "a run without transfers gives a page" "$report" none.html none.json
check "and stands in the table" has none.html '<a href="#r1">one</a>'
check "and says that nothing was counted" has none.html 'Nothing was counted on the links'

# several hosts, and the wire between them
jq '. as $r | {in: {frames: 0, bytes: 0, roce: {frames: 0, payload_bytes: 0, dropped: 0, opcodes: {}},
	drops: {runt: 0, loss: 0}, corrupted: 0, duplicated: 0, reordered: 0, delayed: 0}} as $n |
	{up: $n.in, down: $n.in} as $none |
	def way($f; $p; $u; $again; $drops): {frames: $f, roce: {payload_bytes: $p,
		unique_payload_bytes: $u, repeated: $again}, drops: {runt: 1, loss: $drops}, reordered: 5};
	.transfers[0].host = "b" | .devices = [] | .links = [] |
	.hosts = {a: ($r | {topology: "first <t>", devices, links}),
		b: ($r | {topology: "second", devices, links: []})} |
	.wire = {put: {a: {out: way(70; 4194304; 3145728; 7; 2), in: way(3; 0; 0; 0; 0)},
			b: {out: way(3; 0; 0; 0; 0), in: way(68; 2097152; 0; 0; 2)}}} |
	.wire.total = .wire.put' good.json > hosts.json
check "several hosts give a page" "$report" hosts.html hosts.json
check_eq "each has a heading" "a b" \
	"$(grep -o "<h3>Host [a-z]</h3>" hosts.html | sed 's/.*Host \(.\)<.*/\1/' | xargs)"
check "with its topology" has hosts.html 'Topology <code>first &lt;t&gt;</code>'
check_eq "and a drawing; the wire has one too" 3 "$(grep -c "<svg " hosts.html)"
check_eq "drawings have names of their own" "" \
	"$(grep -o ' id="[^"]*"' hosts.html | sort | uniq -d)"
check "a's links are a's" has hosts.html \
	'<title>nvme0: 3.0 MiB between devices, turned round in a switch</title>'
check_eq "of b nothing was counted, which is said once" 1 \
	"$(grep -c 'Nothing was counted on the links' hosts.html)"
check "what a sent is the thickest on the wire" has hosts.html \
	'<path class="wire" stroke-width="9.0" d="M104 54V120">'
check "half of it that much thinner" has hosts.html '<path class="wire" stroke-width="5.2"'
check_eq "what carried nothing is no stroke" 2 \
	"$(grep -c '<path class="idle" stroke-width="1.0" d="M[0-9]* 54V120">' hosts.html)"
check "its words" has hosts.html '>↑ 4.0 MiB<'
check "they are said, too" has hosts.html \
	'<desc id="w1-d">host a sent 70 frames with 4.0 MiB of RoCE payload, 7 of them again, 3 were dropped; it received 3 frames with 0 B, 1 were dropped. host b sent 3 frames'
check "a drawing says whose it is" has hosts.html '>Host a, topology first &lt;t&gt;</title>'
check "all of it in words" has hosts.html '<title>host a sent 70 frames with 4.0 MiB of RoCE payload, 7 of them again, 3 were dropped; it received 3 frames with 0 B, 1 were dropped</title>'
check "a row of the table" has hosts.html '<td>put</td><td>a</td><td class="n">70</td><td class="n">4.0 MiB</td><td class="n">3.0 MiB</td><td class="n">7</td><td class="n">3</td><td class="n">3</td><td class="n">0 B</td><td class="n">1</td><td class="n">5</td>'
check_eq "one for each label and host, and for the whole run" 4 \
	"$(grep -cE '<tr><td>(put|the whole run)</td><td>[ab]</td>' hosts.html)"
check "a transfer says whose it is" has hosts.html '<td>b: read</td>'
check "a run of one host has no wire" hasnt page.html 'class="wire"'
check "a page of both kinds" "$report" both.html hosts.json good.json
check_eq "the second has its own drawing and time line only" 5 "$(grep -c "<svg " both.html)"
jq '.verdict = "fail"' good.json >bad-verdict.json
check "a page of one that failed" "$report" failed.html good.json bad-verdict.json good.json
check "counts it" has failed.html '<strong>3 runs: 2 pass, 1 fail.</strong>'

cat > matrix.json <<'E2'
{"cells": [{"scenario": "one", "kernel": "7.2", "topology": "same-switch",
 "want": {"read": "p2p", "write": "p2p", "reason": ""},
 "got": {"read": "p2p", "write": "bounce"}, "verdict": "fail", "why": "write: wanted <p2p>"},
 {"scenario": "two", "kernel": "6.12", "topology": "other",
 "want": {"read": "bounce", "write": "bounce", "reason": ""},
 "got": {"read": "bounce", "write": "bounce"}, "verdict": "pass", "why": ""}]}
E2
check "a matrix gives a table" "$report" --matrix matrix.json matrix.html good.json
check "a row to a topology, a column to a scenario and kernel" has matrix.html \
	'<th scope="col">topology</th><th scope="col">one@7.2</th><th scope="col">two@6.12</th></tr>'
check "with the path, and what was expected" has matrix.html \
	'<td>same-switch</td><td class="fail">p2p / bounce (expected p2p / p2p)</td><td></td></tr>'
check "one word where both took the same" has matrix.html \
	'<td>other</td><td></td><td class="pass">bounce</td></tr>'
check "and why" has matrix.html \
	'<li>same-switch, one@7.2: write: wanted &lt;p2p&gt;</li>'

jq '.plot = {title: "a <plot>", svg: "<svg onload=\"alert(1)\">\n\t</svg>"}' good.json > plotted.json
check "a result with a plot" "$report" plots.html plotted.json good.json
check "is shown with its plot, as an image that runs nothing" has plots.html \
	"<img class=\"plot\" alt=\"a &lt;plot&gt;\" src=\"data:image/svg+xml;base64,$(printf '<svg onload="alert(1)">\n\t</svg>' | base64 -w 0)\"/>"
check_eq "and the next one without" 1 "$(grep -c '<img ' plots.html)"

# Every word of a result comes from a guest, or from a file that somebody sent
jq --arg p "\"'><script>" '.wire.total.a.out.frames = $p | .wire.total.a.out.roce.payload_bytes = $p |
	walk(if type == "string" and . != "q35" and . != "-" then $p + .
		elif type == "object" and has("a") then with_entries(.key |= $p + .) else . end)' \
	hosts.json > hostile.json
check_eq "hostile words are in the result" 2 "$(jq -r '.hosts | keys[]' hostile.json | grep -c "^\"'><script>")"
jq --arg p "\"'><script>" 'walk(if type == "string" and . != "q35" and . != "-" then $p + . else . end)' \
	good.json > hostile1.json
jq --arg p "\"'><script>" 'walk(if type == "string" then $p + . else . end)' matrix.json > hostile2.json
check "and give a page" "$report" --matrix hostile2.json hostile.html hostile.json hostile1.json
check "they are words in it" has hostile.html "<h3>Host &quot;'&gt;&lt;script&gt;a</h3>"
check_eq "and nothing else" "" "$(grep -oiE "<script.{9}|\"'.{9}" hostile.html)"
for page in known none hosts both matrix plots hostile; do
	check "$page.html is well-formed" well_formed "$page.html"
done

# Each must fail, in one line, and leave no page behind
refused() {
	"$report" bad.html "$1" 2> err
	[ $? -eq 64 ] && [ "$(wc -l < err)" -eq 1 ] && [ ! -e bad.html ] && grep -q "$2" err
}
for plot in '"text"' '{"svg": 1, "title": "t"}' '{"svg": "s"}'; do
	jq --argjson plot "$plot" '.plot = $plot' good.json > bad.json
	check "the plot $plot is refused" refused bad.json "its plot needs a title and an svg"
done
for key in verdict devices links; do
	jq "del(.$key)" good.json > bad.json
	check "a result without $key is refused" refused bad.json "$key"
done
for path in .hosts.a.devices .hosts.b.links .wire.total .wire; do
	jq "del($path)" hosts.json > bad.json
	check "a result of hosts without $path is refused" refused bad.json "hosts needs devices and links"
done
jq "del(.hosts.b)" hosts.json > bad.json
check "a result that lacks a host of the wire is refused" refused bad.json "the wire has a host"
echo '{' > bad3.json
check "no JSON is refused" refused bad3.json bad3.json
check "a missing file is refused" refused missing.json missing.json
jq '.links[1].below = "gpu7"' good.json > bad4.json
"$report" bad.html bad4.json 2> err
check_eq "a link to nowhere is refused" 64 $?
check "… with what is wrong and what to do" grep -qxF "scenarios/report: the result of one is not whole: its link sw0.0 leads to gpu7, which is none of its devices; run the scenario again with --json" err
check "and names the device" grep -q gpu7 err
usage() { # WORDS ARG...: refused in one line with these words
	words=$1
	shift
	"$report" "$@" 2> err
	[ $? -eq 64 ] && [ "$(tail -n 1 err | grep -c "$words")" -eq 1 ] && [ ! -e bad.html ]
}
check "no arguments is a usage error" usage 'exit status is 0 when the page was written'
check "a page without results" usage 'exit status is 0 when the page was written' bad.html
check "an unknown option" usage 'unknown option --nonsense' --nonsense bad.html good.json
check "--matrix without a value" usage '.--matrix needs a value' --matrix
check "a matrix that is none" usage 'no result of scenarios/matrix' --matrix good.json bad.html good.json
check "a page where none can be" usage 'cannot write no/such/bad.html' no/such/bad.html good.json
check "a result in the page's place" usage 'the page comes first' good.json bad.html
check "--help helps" "$report" --help

# ---- at a glance: what was not direct, why, and what to do ----
staged='p2p refused: EFAULT (14): the kernel cannot take pages of the GPU'"'"'s mapping: no P2PDMA in this kernel or in the GPU'"'"'s driver'
jq --arg why "$staged" '.scenario = "two" | .transfers |= map(.path = "bounce" | .host_bytes = .bytes | .reason = $why)' \
	good.json >staged.json
jq '.transfers |= map(.path = "p2p" | .host_bytes = 0 | .reason = "")' good.json >direct.json
check "a page of a direct and a staged run" "$report" pair.html direct.json staged.json
check "… is well formed" well_formed pair.html
check_eq "the reason is told once for both transfers" 1 "$(grep -c '^<li><a href="#r2">two</a>, read, write: <b>bounce</b>, <b>3.0 GiB</b> through host memory, because p2p refused' pair.html)"
check "… with what to do" has pair.html '<b>What to do:</b> boot a kernel with CONFIG_PCI_P2PDMA'
cured() { # REASON CURE
	jq --arg why "$1" '.transfers |= map(.path = "bounce" | .reason = $why)' good.json >cure.json
	"$report" cure.html cure.json && has cure.html "$2"
}
check "what to do about a way that was asked for" cured 'PLN_MR_ONLY_STAGED' '<b>What to do:</b> nothing: the program asked'
check "… about a refusal by the kernel" cured 'the kernel refuses DMA between this storage device and this GPU' \
	'<b>What to do:</b> put drive and GPU below one switch without ACS redirect'
# of many, in one page: what was moved, why it was not direct, what to do
cat >cures <<'END'
data that is not aligned|unaligned: 100 bytes before and 0 after whole blocks of 4096 bytes|begin and end transfers at whole blocks
data that is not aligned, in a file that was refused|unaligned, and p2p of this file was refused before|ask peerlane doctor
dm-crypt|p2p refused: EINVAL (22): dm-crypt (dm-0, data) is between file and drive: the processor must decrypt all data|use a self-encrypting drive
md|p2p refused: EREMOTEIO (121): md (md0) is between file and drives: the drives refuse, or it does not pass memory of devices on|use level 0, 1 or 10
LVM|p2p refused: EINVAL (22): the device mapper (dm-0, vg-data) is between file and drive: it does not pass memory of devices on|put the file system on a partition
a file as a drive|p2p refused: EINVAL (22): loop0 is between file and drive: it has its own buffers in host memory|mount the drive itself
a drive that is not NVMe|p2p refused: EOPNOTSUPP (95): the storage driver does not do peer-to-peer DMA|move the file to an NVMe drive
NFS|p2p refused: EREMOTEIO (121): the file system takes no memory of devices|copy the file to a
direct IO|O_DIRECT does not work on this file|keep the file on ext4 or xfs
memory as a file|the file system keeps its data in host memory|keep the file on ext4 or xfs
a small BAR1|BAR1 is full of mappings in use|give the GPU a larger BAR1
END
jq --rawfile cures cures '.transfers[0] as $one | .transfers = [$cures | rtrimstr("\n") / "\n" | .[] / "|" | . as $row
	| $one + {what: $row[0], path: "bounce", reason: $row[1]}]' good.json >cure.json
check "a page of many reasons" "$report" cures.html cure.json
while IFS="|" read -r name why cure; do
	: "$why"
	check "… about $name" grep -qE ", $name: <b>bounce</b>.*<b>What to do:</b> $cure" cures.html
done <cures
# these are words of the library
check_eq "… all of which the library still has" "" "$(printf "%s\n" "unaligned:" "unaligned, and p2p of this file was refused" "dm-crypt (" "md (" "the device mapper (" "%s is between file and drive" \
	"the storage driver does not do peer-to-peer DMA" "the file system takes no memory of devices" "O_DIRECT does not work on this" \
	"BAR1 is full" "no static BAR1" "the kernel refuses DMA between" "P2PDMA in this kernel" | while IFS= read -r words; do
	cat "$TOP"/userlib/cufile/*.c | grep -qF "$words" || echo "$words"
done)"
check "… about an RDMA device" cured 'mlx5_0 cannot take dma-bufs' '<b>What to do:</b> use an RDMA device whose driver takes'
check "… about all else" cured 'something else' '<b>What to do:</b> ask peerlane doctor'
check_eq "they are side by side" 1 "$(grep -c '^<div class="beside">' pair.html)"
check "the direct one is first" has pair.html '<div><h3>Direct: <a href="#r1">one</a></h3>'
check "… with the bytes through host memory of the other" has pair.html '3.0 GiB, of them <b>3.0 GiB</b> through host memory.'
check_eq "no id is there twice" "" "$(grep -o ' id="[^"]*"' pair.html | sort | uniq -d)"
check_eq "each drawing is named by its own words" "" "$(grep -o 'aria-labelledby="[^"]*"' pair.html | tr -d '"' |
	sed 's/.*=//' | tr ' ' '\n' | while read -r id; do has pair.html "id=\"$id\"" || echo "$id"; done)"
jq '.transfers[0].bytes += 1' staged.json >other.json
check "other bytes are another transfer" "$report" other.html direct.json other.json
check "… and stand beside nothing" hasnt other.html '<div class="beside">'
# the same of several hosts; of a coherent window and of a kernel module, which are direct, too; each says what differs
jq '.transfers |= (map(.host_bytes = 0 | .reason = "") | .[0].path = "coherent" | .[1].path = "kernel")' hosts.json >hosts-direct.json
jq '.scenario = "two" | .topology = "no-window" | .kernel = "6.12" | .transfers |= map(.path = "bounce" | .host_bytes = .bytes)' hosts.json >hosts-staged.json
check "a page of a direct and a staged run on several hosts" "$report" hosts-pair.html hosts-direct.json hosts-staged.json
check "… is well formed" well_formed hosts-pair.html
sed -n '/^<div class="beside">/,/class="first all"/p' hosts-pair.html | sed '$d' >hosts-beside
check_eq "they are side by side, with each host" "Direct one a b Staged two a b" \
	"$(grep -oE '<h3>(Direct|Staged)|#r[12]">[a-z]*|<h4>Host [a-z]' hosts-beside | sed 's/.*[ >]//' | xargs)"
check_eq "… and a drawing of each" 4 "$(grep -c '<svg ' hosts-beside)"
check "… the direct one" has hosts-beside '<p class="dim">Topology <code>same-switch</code>, guest kernel 7.2.</p>'
check "… the staged one" has hosts-beside '<p class="dim">Topology <code>no-window</code>, guest kernel 6.12.</p>'
check_eq "… no id is there twice" "" "$(grep -o ' id="[^"]*"' hosts-pair.html | sort | uniq -d)"
jq '.transfers[1] += {path: "p2p", host_bytes: 0}' hosts-staged.json >hosts-mixed.json
check "what is neither direct nor staged as a whole" "$report" mixed.html hosts-direct.json hosts-mixed.json
check "… stands beside nothing" hasnt mixed.html '<div class="beside">'
# of scenarios/try: RDMA, which no program reports, so that the devices' counters stand for it; and files without a GPU
# of_try NAME COUNTED: its result
of_try() {
	jq -nc -L "$TOP/scenarios/lib/accounting" --arg name "$1" --argjson counted "$2" '
		include "try";
		{scenario: $name, topology: $name, kernel: "7.2"} + machine([]; $counted)
		| page([{host: "a", devices: [], counted: {}}, {host: "b", devices: [], counted: {}}];
			{ports: ({a: {}, b: {}} | map_values({pauses: 0, out: {frames: 1, roce: {}, drops: {}}, in: {frames: 1, roce: {}, drops: {}}}))};
			{title: $name, accel: "tcg", seconds: 1, verdict: "pass"})'
}
of_try rdma-direct '{"a": {"gpu0": {"bar1-dma-read": 64}, "cx0": {"data-host-read": 0}}, "b": {"gpu0": {"bar1-dma-write": 64}, "cx0": {"data-host-read": 0, "data-host-write": 0}}}' >try-direct.json
of_try rdma-staged '{"a": {"gpu0": {}, "cx0": {"data-host-read": 72}}, "b": {"gpu0": {}, "cx0": {"data-host-read": 0, "data-host-write": 80}}}' >try-staged.json
of_try rdma-partly '{"a": {"gpu0": {"bar1-dma-read": 64}, "cx0": {"data-host-read": 0}}, "b": {"gpu0": {}, "cx0": {"data-host-read": 0, "data-host-write": 64}}}' >try-partly.json
check "a page of RDMA, direct and staged" "$report" try.html try-direct.json try-staged.json
check_eq "… of which the devices know no equal bytes, stands side by side" "Direct: rdma-direct Staged: rdma-staged" \
	"$(grep -oE '<h3>(Direct|Staged): <a href="#r[12]">[a-z-]*' try.html | sed 's/<[^>]*>//g' | xargs)"
check "… and its path has words" has try.html '<b>host</b>: from or to host memory'
check "a page of RDMA that one host has staged" "$report" partly.html try-partly.json try-staged.json
check_eq "… stands beside nothing, as it is neither" "" "$(grep -oE '<h3>(Direct|Staged)' partly.html)"
for path in posix cache mixed host; do
	jq --arg path "$path" '.transfers[1].path = $path' direct.json >neither.json
	jq --arg path "$path" '.transfers[].path = $path' direct.json >"staged-$path.json"
	check "a page of p2p and $path" "$report" neither.html neither.json staged.json
	check_eq "… stands beside nothing" 0 "$(grep -c '^<div class="beside">' neither.html)"
	check "a page of $path" "$report" "staged-$path.html" direct.json "staged-$path.json"
	check_eq "… is no direct one" 1 "$(grep -c '<h3>Staged: <a href="#r2">' "staged-$path.html")"
done
jq '.transfers[1].host_bytes = 4096' direct.json >neither.json
check "a page of p2p with bytes through host memory" "$report" neither.html neither.json staged.json
check_eq "… is no direct one" 0 "$(grep -c '^<div class="beside">' neither.html)"
check "the results can be saved from the page" test "$(grep -o 'data:application/json;base64,[^"]*' pair.html |
	sed 's/.*,//' | base64 -d | jq -cS .)" = "$(jq -csS . direct.json staged.json)"

# ---- on a machine that has only what host-tools.list names: jq is in the build root, where the user's files are not to be seen ----
mkdir -p tree/images/build host
cp -R "$TOP/scenarios" "$TOP/versions.mk" tree/
printf '#!/bin/sh\necho "the root is entered" >&2\ncd / && PATH=/usr/bin:/bin exec "$@"\n' >tree/images/build/in-root
printf '#!/bin/sh\necho 1\n' >tree/images/build/version
chmod +x tree/images/build/*
awk '!/^#/ && NF && $1 !~ /\// { print $1 }' "$TOP/images/build/host-tools.list" | while read -r tool; do
	! command -v "$tool" >/dev/null || ln -s "$(command -v "$tool")" "host/$tool"
done
on_host() { env -u PEERLANE_IN_ROOT PATH="$OUT/host" "$@"; }
check "a page" on_host tree/scenarios/report host.html direct.json staged.json
check_eq "... is the same" "$(sed '/This page was made/d' pair.html)" "$(sed '/This page was made/d' host.html)"
check "... with a matrix" on_host tree/scenarios/report --matrix matrix.json host.html good.json
check_fails "what is none is refused" 'matrix.json is no result of scenarios/run: it needs scenario' on_host tree/scenarios/report host2.html matrix.json
check_eq "a table" "$("$report" --text direct.json staged.json)" "$(on_host tree/scenarios/report --text direct.json staged.json 2>/dev/null)"
check_eq "scenarios/draw --json" "$("$TOP/scenarios/draw" --json same-switch)" "$(on_host tree/scenarios/draw --json same-switch 2>/dev/null)"
check "... and a drawing" on_host tree/scenarios/draw --svg host.svg same-switch
rm -rf tree

# ---- for terminals ----
"$report" --text direct.json staged.json >text.out
check_eq "a row for each run" "one two" "$(awk '$NF == "pass" { printf "%s%s", sep, $1; sep = " " }' text.out)"
check "bytes through host memory" grep -qE '^two +bounce +3072 MiB +3072 MiB ' text.out
check "… of a direct one, and its CPU time" grep -qE '^one +p2p +3072 MiB +0 +0[.]50 +pass$' text.out
check_eq "what was not direct, once" "two: read, write: bounce" "$(grep -E '^[a-z]+: ' text.out)"
check "… and what to do" grep -q '^  do  .*CONFIG_PCI_P2PDMA' text.out
check "no line is wider than 100" awk 'length($0) > 100 { exit 1 }' text.out
check_fails "a page and a table are two things" 'usage' "$report" --text --matrix x.json direct.json
check_fails "a result that is none" 'is no result' "$report" --text /dev/null
finish
