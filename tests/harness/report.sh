#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: the report page says what the results say, and refuses what it cannot draw
# tags: quick
# timeout: 60
# shellcheck disable=SC2016 # jq programs
. "$TOP/tests/lib/case.sh"
need_tool jq

cat > good.json <<'E2'
{"scenario": "one", "title": "a <b> & \"c\"", "topology": "same-switch",
 "kernel": "7.2", "accel": "tcg", "verdict": "pass", "seconds": 2.5,
 "transfers": [
  {"what": "read", "path": "p2p", "bytes": 1073741824, "host_bytes": 0, "cpu_seconds": 0.5, "reason": "r1"},
  {"what": "write", "path": "bounce", "bytes": 2147483648, "host_bytes": 3221225472, "cpu_seconds": 1, "reason": "r2"}],
 "routes": [
  {"from": "nvme0", "to": "gpu0", "bytes": 1048576, "what": "peer"},
  {"from": "gpu0", "to": "memory", "bytes": 2097152}]}
E2
report=$TOP/scenarios/report

# counts of whole lines or parts, so that a doubled or lost element shows
has() { grep -qF -- "$2" "$1"; }
hasnt() { ! grep -qF -- "$2" "$1"; }

check "a good result gives a page" "$report" page.html good.json
check "text is escaped" has page.html 'a &lt;b&gt; &amp; &quot;c&quot;'
check "bytes of the table" has page.html '<td class="n">1.0 GiB</td>'
check "bytes through host memory" has page.html '<td class="n">3.0 GiB</td>'
check "CPU seconds are per GiB" has page.html '<td class="n">0.50</td>'
check "the reason is there" has page.html '<td>r2</td>'
check "a peer route is drawn between the devices" \
	has page.html '<title>nvme0: 1.0 MiB between devices</title>'
check "the peer route does not go above the switch" \
	hasnt page.html '<title>rp0: 1.0 MiB between devices</title>'
check "a staged route goes up to the root port" \
	has page.html '<title>rp0: 2.0 MiB through host memory</title>'
check "a staged route ends in host memory" \
	has page.html '<title>host memory: 2.0 MiB</title>'
check "nothing is fetched from elsewhere" \
	sh -c '! grep -qE "https?:|src=|@import|url\(|<script" page.html'
check_eq "tags are balanced" \
	"$(grep -o '<\(section\|svg\|table\|tbody\|thead\|tr\|td\|th\|ul\|li\|p\|h2\)[ >]' page.html | wc -l)" \
	"$(grep -o '</\(section\|svg\|table\|tbody\|thead\|tr\|td\|th\|ul\|li\|p\|h2\)>' page.html | wc -l)"

jq '.transfers = []' good.json > none.json
check "a run without transfers gives a page" "$report" none.html none.json
check "and stands in the table" has none.html '<a href="#r1">one</a>'

# Each must fail, in one line, and leave no page behind
refused() {
	"$report" bad.html "$1" 2> err
	[ $? -eq 2 ] && [ "$(wc -l < err)" -eq 1 ] && [ ! -e bad.html ] && grep -q "$2" err
}
jq 'del(.verdict)' good.json > bad1.json
check "a result without verdict is refused" refused bad1.json verdict
jq '.topology = "no-such"' good.json > bad2.json
check "an unknown topology is refused" refused bad2.json no-such
echo '{' > bad3.json
check "no JSON is refused" refused bad3.json bad3.json
check "a missing file is refused" refused missing.json missing.json
jq '.routes[0].to = "gpu7"' good.json > bad4.json
"$report" bad.html bad4.json 2> err
check_eq "a route to nowhere is refused" 2 $?
check "and names the device" grep -q gpu7 err
check_not "no arguments is a usage error" "$report"
check "--help helps" "$report" --help
finish
