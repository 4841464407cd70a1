#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a real browser shows the report with nothing cut off and no labels on top of each other
# tags: browser
# timeout: 90
. "$TOP/tests/lib/case.sh"
need_tool jq
need_tool chromium-headless-shell

# every topology, with the longest words on every link
cat > small.jq <<'E2'
[inputs | split(" ") | {name: .[0], kind: .[1], parent: .[2]} + (.[3:]
 | map(split("=") | {key: .[0], value: .[1]}) | from_entries)] as $devices |
{up: 1073741823, down: 1073741823} as $pair |
{scenario: $t, title: "t", topology: $t, kernel: "7.2", accel: "tcg",
 verdict: "pass", seconds: 2.5,
 transfers: [{what: "read", path: "p2p", bytes: 268435456, host_bytes: 0,
  cpu_seconds: 0.5, reason: "the drive reaches BAR1"}], devices: $devices,
 links: [$devices[] | select(.kind | test("^(q35|host-bridge|root-port)$") | not)
  | {link: .parent, below: .name, peer: $pair, redirected: $pair, host: $pair,
     refused: 0, other: 0, from: "port counters"} + $pair]}
E2
set --
for topology in "$TOP"/scenarios/topologies/*.topo; do
	name=$(basename "$topology" .topo)
	awk -v mode=devices -f "$TOP/scenarios/lib/topology.awk" "$topology" |
		jq -nR --arg t "$name" -f small.jq > "t-$name.json"
	set -- "$@" "t-$name.json"
done
# and eight hosts with a wire
jq -n --slurpfile all t-two-hosts-rxe.json '$all[0] as $t |
	{frames: 1073741823, roce: {payload_bytes: 1073741823, unique_payload_bytes: 1073741823,
	 repeated: 1073741823}, drops: {loss: 1073741823}, reordered: 1073741823} as $way |
	$t + {devices: [], links: [], hosts: ([("a","b","c","d","e","f","g","h") | {key: ., value: $t}]
	 | from_entries)} | .wire.total = (.hosts | map_values({in: $way, out: $way}))' > t-hosts.json
set -- "$@" t-hosts.json
check "the page is made, every topology in it" "$TOP/scenarios/report" page.html "$@"

# The browser itself measures: text outside of its drawing, labels that
# overlap, a page wider than the window.  It writes what is wrong to the title.
cat > measure.html <<'E2'
<script>
const wrong = [];
const over = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 &&
	a.top < b.bottom - 1 && b.top < a.bottom - 1;
const drawings = [...document.querySelectorAll("svg")];
drawings.forEach((svg, n) => {
	const frame = svg.getBoundingClientRect();
	const texts = [...svg.querySelectorAll("text")];
	const boxes = texts.map(t => t.getBoundingClientRect());
	boxes.forEach((box, i) => {
		if (box.width === 0 || box.left < frame.left - 1 || box.right > frame.right + 1 ||
		    box.top < frame.top - 1 || box.bottom > frame.bottom + 1)
			wrong.push(n + ": outside: " + texts[i].textContent);
		for (let j = 0; j < i; j++)
			if (over(box, boxes[j]))
				wrong.push(n + ": overlap: " + texts[i].textContent + " / " + texts[j].textContent);
	});
});
if (document.documentElement.scrollWidth > innerWidth)
	wrong.push("the page is wider than the window");
document.title = "drawings=" + drawings.length + " wrong=" + wrong.join("; ");
</script>
E2
sed '/<\/body>/e cat measure.html' page.html > measured.html
browser() {
	timeout 60 chromium-headless-shell --no-sandbox --disable-gpu --disable-quic \
		--no-first-run --disable-background-networking --disable-component-update \
		--disable-sync --user-data-dir="$OUT/profile" --window-size=1100,1400 "$@" 2> browser.log
}
browser --dump-dom "file://$OUT/measured.html" > dom.html
title=$(sed -n 's/.*<title>\(drawings=.*\)<\/title>.*/\1/p' dom.html)
# eight hosts and a wire are nine drawings
check_eq "every drawing is whole and readable" "drawings=$(($# + 8)) wrong=" "$title"
browser --screenshot="$OUT/report.png" "file://$OUT/page.html"
check "a screenshot can be taken" test -s report.png
rm -rf "$OUT/profile"
finish
