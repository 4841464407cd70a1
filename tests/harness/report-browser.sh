#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a real browser shows the report whole and readable: wide and narrow, light and dark
# tags: browser
# timeout: 240
. "$TOP/scenarios/lib/case.sh"
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
# shellcheck source=scenarios/lib/machine/topology.sh
. "$TOP/scenarios/lib/machine/topology.sh"
for name in $(topology_names); do
	topology devices "$name" |
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

# The browser itself measures: text outside of its drawing, labels that overlap
# or are shrunk below 9 px, a page wider than the window, pale colours.  It writes
# what is wrong to the title.
cat > measure.html <<'E2'
<script>
const wrong = [];
const over = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 &&
	a.top < b.bottom - 1 && b.top < a.bottom - 1;
const drawings = [...document.querySelectorAll("svg")];
drawings.forEach((svg, n) => {
	const frame = svg.getBoundingClientRect();
	const scale = frame.width / svg.viewBox.baseVal.width;
	if (12 * scale < 9)
		wrong.push(n + ": small: letters of " + 12 * scale + " px");
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
/* as the Web Content Accessibility Guidelines count: 4.5 for words, 3 for lines */
const light = name => {
	let hex = getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim().slice(1);
	if (hex.length === 3)
		hex = [...hex].map(c => c + c).join("");
	return [.2126, .7152, .0722].reduce((sum, weight, i) => {
		const c = parseInt(hex.slice(2 * i, 2 * i + 2), 16) / 255;
		return sum + weight * (c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4);
	}, 0);
};
for (const [front, back, least] of [["ink", "paper", 4.5], ["dim", "paper", 4.5],
		["ink", "box", 4.5], ["dim", "box", 4.5], ["peer", "paper", 4.5], ["host", "paper", 4.5],
		["root", "paper", 3], ["drive", "paper", 3]]) {
	const [a, b] = [light(front), light(back)];
	const contrast = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
	if (!(contrast >= least))
		wrong.push("pale: " + front + " on " + back + ": " + contrast);
}
document.title = "drawings=" + drawings.length + " width=" + innerWidth +
	(matchMedia("(prefers-color-scheme: dark)").matches ? " dark" : " light") + " wrong=" + wrong.join("; ");
</script>
E2
sed '/<\/body>/e cat measure.html' page.html > measured.html
browser() { # WIDTH LIGHT ARG…: LIGHT is 1, or 0 for dark
	width=$1
	light=$2
	shift 2
	timeout 60 chromium-headless-shell --no-sandbox --disable-gpu --disable-quic \
		--no-first-run --disable-background-networking --disable-component-update \
		--disable-sync --user-data-dir="$OUT/profile" --window-size="$width,1400" --blink-settings="preferredColorScheme=$light" "$@" 2> browser.log
}
measured() { # PAGE WIDTH LIGHT: the title of the page when it has measured itself
	browser "$2" "$3" --dump-dom "file://$OUT/$1" > dom.html
	sed -n 's/.*<title>\(drawings=.*\)<\/title>.*/\1/p' dom.html
}
# eight hosts and a wire are nine drawings
drawings=$(($# + 8))
check_eq "on a screen every drawing is whole and readable" \
	"drawings=$drawings width=1280 light wrong=" "$(measured measured.html 1280 1)"
check_eq "in the dark, too" \
	"drawings=$drawings width=1280 dark wrong=" "$(measured measured.html 1280 0)"
check_eq "and on a telephone" \
	"drawings=$drawings width=400 light wrong=" "$(measured measured.html 400 1)"
browser 1280 1 --screenshot="$OUT/report.png" "file://$OUT/page.html"
check "a screenshot can be taken" test -s report.png

# what is wrong is seen
sed 's/--dim:#57606a/--dim:#a7b0ba/; s/min-width:[0-9]*px//g; s/<h1>/<h1 style="width:90rem">/' measured.html > bad.html
measured bad.html 400 1 | tr ';' '\n' > seen
for word in "wider than the window" "pale: dim on paper" "small: letters"; do
	check "a page that is wrong: $word" grep -q "$word" seen
done
rm -rf "$OUT/profile"
finish
