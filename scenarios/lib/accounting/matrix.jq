# SPDX-License-Identifier: MIT
#
# cell($want): a cell of scenarios/matrix from a run's result (or null): which
# way read and write took, and whether that is what $want says ({read, write,
# reason}; docs/how-to/run-the-matrix.md).
#
# The library's word for the path has to agree with what the devices counted: p2p
# moves no file data through host memory, bounce all of it.  "p2p-root" is p2p
# through the root complex, told by the link of the drive.

def way($result):
	. as $t |
	(if .what == "read" then "up" else "down" end) as $dir |
	([$result.devices[] | select(.kind == "nvme" and .image == "disk0") | .name]
	 | first) as $drive |
	([($result.counted[.label].links // [])[] | select(.below == $drive)]
	 | first) as $link |
	if .path == "p2p" and .host_bytes != 0 then
		{got: "p2p?", why: "the library says p2p, but the drive moved \(.host_bytes) bytes through host memory"}
	elif .path == "p2p" and $link.peer[$dir] >= .bytes then {got: "p2p"}
	elif .path == "p2p" and $link.redirected[$dir] >= .bytes
	then {got: "p2p-root"}
	elif .path == "p2p" then
		{got: "p2p?", why: "the library says p2p, but the drive's link did not carry it: \($link)"}
	elif .path == "bounce" and .host_bytes < .bytes then
		{got: "bounce?", why: "the library says bounce, but the drive moved only \(.host_bytes) bytes through host memory"}
	else {got: .path} end;

def cell($want):
	. as $result |
	if . == null then {got: {read: "", write: "", reason: ""},
		wrong: ["the run left no result"]}
	else
		{got: {read: "", write: "", reason: (.reason // "")}, wrong: []} |
		if $result.verdict == "skip" then
			.got.read = "skip" | .got.write = "skip"
		elif $result.verdict != "pass" then
			.wrong = ["the run failed: \($result.reason // "no reason given")"]
		else
			reduce ("read", "write") as $d (.;
				[$result.transfers[] | select(.what == $d) | way($result)] as $ways |
				.got[$d] = ($ways | map(.got) | unique | join("+")) |
				.wrong += [$ways[].why // empty])
			| .got.reason = ([$result.transfers[].reason | select(. != "" and . != null)]
				| unique | join("; "))
		end |
		if .wrong == [] then
			.wrong = [("read", "write") as $d | select(.got[$d] != $want[$d])
				| "\($d) took \(if .got[$d] == "" then "no way at all" else .got[$d] end) instead of \($want[$d])"
				+ if .got.reason == "" then "" else " (\(.got.reason))" end]
		else . end |
		if .wrong == [] then
			if $want.reason == "" and .got.reason != "" then
				.wrong = ["there should be no reason, and it is: \(.got.reason)"]
			elif $want.reason != "" and (.got.reason | test($want.reason) | not) then
				.wrong = ["the reason should match \"\($want.reason)\", and is: \(.got.reason)"]
			else . end
		else . end
	end |
	{want: $want, got, verdict: (if .wrong == [] then "pass" else "fail" end),
	 why: (.wrong | join("; "))};
