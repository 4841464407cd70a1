#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: a real browser shows the report with nothing cut off and no labels on top of each other
# tags: browser
# timeout: 90
. "$TOP/tests/lib/case.sh"
need_tool jq
need_tool chromium-headless-shell

cat > small.json <<'E2'
{"scenario": "one", "title": "t", "topology": "same-switch", "kernel": "7.2",
 "accel": "tcg", "verdict": "pass", "seconds": 2.5,
 "transfers": [{"what": "read", "path": "p2p", "bytes": 268435456, "host_bytes": 0,
  "cpu_seconds": 0.5, "reason": "the drive reaches BAR1"}],
 "routes": [{"from": "nvme0", "to": "gpu0", "bytes": 268435456},
  {"from": "nvme0", "to": "memory", "bytes": 268435456}]}
E2
set -- small.json
for topology in "$TOP"/scenarios/topologies/*.topo; do
	name=$(basename "$topology" .topo)
	jq --arg t "$name" '.topology = $t | .scenario = $t | .routes = []' small.json > "t-$name.json"
	set -- "$@" "t-$name.json"
done
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
check_eq "every drawing is whole and readable" "drawings=$# wrong=" "$title"
browser --screenshot="$OUT/report.png" "file://$OUT/page.html"
check "a screenshot can be taken" test -s report.png
rm -rf "$OUT/profile"
finish
