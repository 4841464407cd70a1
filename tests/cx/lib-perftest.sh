# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2016 # expressions of jq
# perftest's tools between two ConnectX, run after run as a list says.  A case sources this file.
#
#	perftest_hosts MACHINE LIST	MACHINE is that of both hosts, LIST a file of this folder
. "$TOP/scenarios/lib/case.sh"
. "$TOP/scenarios/lib/machine/vm.sh"
. "$TOP/scenarios/lib/scenario.sh"

perftest_hosts() {
	# shellcheck disable=SC2034 # of scenario.sh and hosts.sh
	SC_SOURCE=$BUILD/out/data SC_TOPOLOGY=$1 SC_KERNEL=7.2 SC_GUEST=$TOP/tests/cx/guest/perftest-hosts
	. "$TOP/scenarios/lib/machine/hosts.sh"
	need_tool jq cpio flock make
	need_file "$QEMU" "$BUILD/guest/7.2/mlx5.cpio" "$BUILD/guest/7.2/perftest.cpio"

	sc_build
	hosts_case
	echo perftest >>"$OUT/case/extras"
	# One run to a line: its number, tool, service, memory, options, and what is wanted.  PERFTEST_ONLY=REGEX takes some of them, to find an error
	awk -F ' *[|] *' '
		/^#/ || NF < 5 { next }
		{
			for (i = split($1, tool, ","); i; i--)
				for (j = split($2, service, ","); j; j--)
					for (k = split($3, memory, ","); k; k--)
						print tool[i] "|" service[j] "|" memory[k] "|" $4 "|" $5 (NF > 5 ? "|" $6 : "")
		}' "$TOP/tests/cx/$2" | grep -E -e "${PERFTEST_ONLY:-.}" | awk '{ print NR "|" $0 }' >case/runs
	asked=$(wc -l <case/runs)
	check "$2 asks for something" test "$asked" -gt 0
	hosts_boot 2100 2

	# Each end reports: number, status.  The runs that are to work and are in GPU memory have been counted
	while IFS='|' read -r n tool service memory options want; do
		[ "$memory:$want" = gpu:ok ] || continue
		bytes=$(sed -n "s/^# run $n moved //p" a/result.log)
		check "$tool $service $options: each byte went from GPU to GPU, none of it by host memory" perftest_both "run$n" \
			"(.a, .b | .[\"data-host-read\"], .[\"data-host-write\"] | . < 8192) and
			([.a, .b | .[\"data-peer-read\"]] | add) >= ${bytes:-error} and ([.a, .b | .[\"data-peer-write\"]] | add) >= ${bytes:-error}"
	done <case/runs
	for host in a b; do
		check_eq "host $host has done all $asked" "$asked" "$(grep -c '^# run [0-9]* ended' "$host/result.log")"
	done
	echo "# $asked runs: $(grep -c '|ok$' case/runs) work, of these $(grep -c '|gpu|.*|ok$' case/runs) in GPU memory; $(grep -vc '|ok$' case/runs) are refused"
}

# perftest_both LABEL JQ: of what both cards have counted in that run, .a and .b
perftest_both() {
	for host in a b; do
		jq -sc --arg host "$host" 'map(select(.kind == "cx").counters) as [$x, $y] |
			{($host): ($y | with_entries(select(.value | type == "number") | .value -= $x[.key]))}' \
			"$host/$1.begin.counted" "$host/$1.end.counted"
	done | jq -se "add | debug | $2"
}
