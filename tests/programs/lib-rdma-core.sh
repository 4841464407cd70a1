# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# rdma-core's own test suite on the emulated ConnectX, for a case of each kind of port.  A case sources this file.
#
#	rdma_core_suite QEMU-ARG…	a guest runs the whole suite on the card that these add; CASE.expect explains what is skipped and
#					what fails, and docs/reference/programs.md has the number of tests that pass
#
# RDMA_CORE_ONLY="NAME…" runs the tests with these in their names, for who works on one; the others then count as missing.
. "$TOP/tests/programs/lib.sh"

rdma_core_suite() {
	# The suite is in Python, which comes with the build root; what it uses does not
	program_source libpython3.13 libpython3.13.so.1.0
	library=$source/libpython3.13.so.1.0
	program_source scapy scapy/packet.py
	scapy=$source/scapy
	program_source pyverbs pyverbs/__init__.py
	pyverbs=$source/pyverbs
	program_source rdma-core tests/run_tests.py
	python=/usr/bin/python3.13
	libs=/usr/lib/x86_64-linux-gnu
	need_file "$QEMU" "$BUILD/guest/7.2/mlx5.cpio" "$python" /usr/lib/python3.13/unittest/main.py "$libs/libmlx5.so.1" "$libs/libefa.so.1"
	case_name=${0##*/}
	case_name=${case_name%.sh}
	expect=$TOP/tests/programs/$case_name.expect

	mkdir -p case/lib case/python/bin case/python/lib case/python/site case/rdma-core
	cp "$python" case/python/bin/
	cp -r /usr/lib/python3.13 case/python/lib/
	(
		cd case/python/lib/python3.13 && rm -rf config-* ensurepip idlelib lib2to3 pydoc_data test tkinter turtledemo venv
		find . -name __pycache__ -exec rm -rf {} +
	)
	cp -r "$pyverbs" "$scapy" case/python/site/
	cp -r "$source/tests" case/rdma-core/
	cp /usr/sbin/devlink case/python/bin/
	cp -L "$library" "$libs/libmlx5.so.1" "$libs/libefa.so.1" case/lib/
	find "$python" /usr/sbin/devlink /usr/lib/python3.13/lib-dynload -type f -exec ldd {} + |
		awk '$1 !~ /^lib(c|m)\.so/ && $3 ~ /^\// { print $3 }' | sort -u | xargs cp -Lt case/lib
	cp "$TOP/scenarios/lib/guest/guest.sh" case/lib/
	# pyverbs closes a context before its queues when Python collects them together, and then destroys queues of a context that is
	# gone: a use after free, in which the suite ends now and then.  So nothing is collected, and the process ends by itself
	sed -i 's/^import os$/import gc, os\ngc.disable()/
		s/^unittest.main(module=tests)$/os._exit(not unittest.main(module=tests, exit=False).result.wasSuccessful())/' \
		case/rdma-core/tests/run_tests.py
	# The guest would compile for minutes.  By "unchecked" it does not look at the time of the sources, which differs there
	check "Python compiles its library and the suite" "$python" -m compileall -q --invalidation-mode unchecked-hash case/python case/rdma-core
	cp "$TOP/tests/programs/guest/rdma-core" case/run
	only=
	for each in ${RDMA_CORE_ONLY-}; do
		only="$only -k $each"
	done
	echo "only='$only'" >case/env
	printf '%s\n' rdma mlx5 >case/extras
	printf '%s\n' mlx5_ib ib_uverbs rdma_ucm >case/modules
	vm_run guest "$TOP/tests/cx/cx.topo" 7.2 "$PWD/case" 1700 "$@"
	status=$?
	ktap_from guest/result.log
	check_eq "the guest ended well" 0 "$status"
	rdma_core_became
	rdma_core_expected
}

# What became of each test: its name, ok, skip or fail, and why it was skipped.  A test that has failed is named again at the end.
rdma_core_became() {
	sed -n 's/^# | //p' guest/result.log >suite
	awk '
		match($0, /^test_[a-zA-Z0-9_]* \(tests\.[a-zA-Z0-9_.]*\)/) {
			name = substr($0, RSTART, RLENGTH)
			sub(/.*\(tests\./, "", name)
			sub(/\)$/, "", name)
			order[++n] = name
			became[name] = "ok"
		}
		name != "" && match($0, /skipped (\047.*\047|".*")$/) {
			became[name] = "skip\t" substr($0, RSTART + 9, RLENGTH - 10)
		}
		/^(FAIL|ERROR): .* \(tests\./ {
			failed = $0
			sub(/.*\(tests\./, "", failed)
			sub(/\).*/, "", failed)
			if (!(failed in became))
				order[++n] = failed
			became[failed] = "fail"
		}
		/^Ran [0-9]+ tests? in / { name = "" }
		END { for (i = 1; i <= n; i++) print order[i] "\t" became[order[i]] }' suite >became
	# The suite has counted, too
	ran=$(sed -n 's/^Ran \([0-9]*\) tests\{0,1\} in .*/\1/p' suite)
	said=$(sed -n 's/^\(OK\|FAILED\) *\((.*)\)\{0,1\}$/ \2/p' suite | tail -n 1 | tr '(),' '   ')
	check_eq "the suite and its report agree: tests, skipped, failed" \
		"${ran:-none} $(said skipped) $(($(said failures) + $(said errors)))" "$(wc -l <became) $(count skip) $(count fail)"
	# Of which time decides whether it passes counts as one that does not
	grep '^either' "$expect" | cut -f 2 >either
	awk -F'\t' -v OFS='\t' 'FILENAME == "either" { either[$1]; next } $1 in either && $2 != "skip" { $2 = "either" } { print }' either became >became.new
	mv became.new became
	summary="$(count ok) of ${ran:-0} tests pass"
	check "docs/reference/programs.md says of it: $summary" \
		grep -q "^| rdma-core's test suite, .*\`programs/$case_name\`.*: $summary;" "$TOP/docs/reference/programs.md"
	echo "# $(count skip) are skipped, $(count fail) fail, time decides of $(count either)"
}
count() { awk -F'\t' -v which="$1" '$2 == which' became | wc -l; }
said() { printf '%s\n' "$said" | sed -n "s/.* $1=\\([0-9]*\\) .*/\\1/p" | grep . || echo 0; }

# Of each line of CASE.expect: which tests are to be skipped or to fail; all others are to pass
rdma_core_expected() {
	awk -F'\t' '
		function name_of(pattern) {
			gsub(/\./, "\\.", pattern)
			gsub(/\*/, ".*", pattern)
			return "^(" pattern ")$"
		}
		FNR == NR {
			if (!/^#/) {
				want[++lines] = $1
				pattern[lines] = $2
			}
			next
		}
		{
			wanted = "ok"
			for (i = 1; i <= lines; i++)
				if ($1 ~ name_of(pattern[i])) {
					wanted = want[i]
					used[i]++
				}
			if (wanted != $2)
				print $1 ": " $2 (($3 != "") ? " (" $3 ")" : "") ", expected: " wanted
		}
		END {
			for (i = 1; i <= lines; i++)
				if (!used[i])
					print "no such test: " pattern[i]
		}' "$expect" became >differ
	if [ -s differ ]; then
		fail "what is skipped and what fails is what $case_name.expect explains" "$(cat differ)"
	else
		pass "what is skipped and what fails is what $case_name.expect explains"
	fi
}
