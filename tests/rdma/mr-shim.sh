#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: libpeerlane-mr.so.0, preloaded and linked: registration, log, strictness
# tags: rdma
# tier: check
# timeout: 120
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/lib/userlib.sh"
need_tool make flock cc

build_userlib core all tests
bin=$BUILD/userlib/tests/host
shim=$BUILD/userlib/libpeerlane-mr.so.0

# run_alone NAME COMMAND…: err is its standard error
run_alone() {
	run_name=$1
	shift
	"$@" >"$OUT/ktap" 2>"$OUT/err"
	run_status=$?
	cat "$OUT/err"
	check_false "$run_name: nothing for the sanitizers" \
		grep -E 'Sanitizer|runtime error' "$OUT/err"
}

# run NAME COMMAND…: the same, and its lines are this case's lines
run() {
	run_alone "$@"
	ktap_from "$OUT/ktap" "$run_name"
}

# told NAME PATTERN FILE LINES: so many lines of the file match
told() {
	check_eq "$1" "$4" "$(grep -cE "$2" "$3")"
}

run alone "$bin/mr_shim_unit" alone
check_eq "alone: ended well" 0 "$run_status"

# The same program three times: nothing built in, linked, with the sanitizers
for way in preloaded linked sanitized; do
	case $way in
	preloaded) set -- env LD_PRELOAD="$shim" "$bin/mr_shim_unit" ;;
	linked) set -- env "$bin/mr_shim_linked" ;;
	sanitized) set -- env "$bin/mr_shim_unit_san" ;;
	esac
	rm -f mr.log
	run "$way" env "PEERLANE_MR_LOG=$OUT/mr.log" "$@" dmabuf
	check_eq "$way: ended well" 0 "$run_status"
	check_eq "$way: nothing on standard error" "" "$(cat err)"
	told "$way: each registration is in the log" \
		'^peerlane-mr\[[0-9]+\]: ibv_reg_mr(_iova2?)?\(0x100[0-9a-f]+, [0-9]+ bytes\): dmabuf: fake0 maps the memory of GPU 0 itself$' mr.log 4
	told "$way: with the program's own dma-bufs" 'ibv_reg_dmabuf_mr\(4096 bytes\): (done as asked|Input/output error)$' mr.log 2
	told "$way: totals" 'total: GPU memory: 4 registered \(dmabuf 4, 16790504 bytes; plain 0, 0 bytes\), 0 refused; host memory: 5 registered; dma-bufs of the program.s own: 1; still registered: 0$' mr.log 1

	rm -f mr.log
	run "$way" env "PEERLANE_MR_LOG=$OUT/mr.log" "$@" refused
	check_eq "$way: a refusal is the program's to handle" 0 "$run_status"
	told "$way: it is said once" 'ibv_reg_mr\(0x10000000, 16777216 bytes\): registration failed: EFAULT; dmabuf refused: EOPNOTSUPP: fake0 cannot take dma-bufs: .*; plain refused: EFAULT: the kernel has no peer-memory client .*; staged not tried: the program must call pln_mr_reg\(\) for it; printed only once' err 1
	told "$way: and no more" . err 1
	told "$way: the log has both" 'registration failed: EFAULT' mr.log 2
	told "$way: they count" 'GPU memory: 0 registered .*, 2 refused;' mr.log 1

	run "$way" "$@" refused
	told "$way: without a log, too" 'printed only once, PEERLANE_MR_LOG shows all' err 1
	run "$way" env "PEERLANE_MR_LOG=-" "$@" plain
	check_eq "$way: plain: ended well" 0 "$run_status"
	told "$way: a log on standard error" 'plain: fake0 took the pointer to memory of GPU 0; dmabuf refused: EOPNOTSUPP' err 1
	run "$way" env "PEERLANE_MR_LOG=-" "$@" foreign
	told "$way: a region from elsewhere is one less" 'still registered: -1$' err 1
	run "$way" env "PEERLANE_MR_LOG=$OUT/none/log" "$@" plain
	told "$way: a log that cannot be opened" 'PEERLANE_MR_LOG: .*/none/log: No such file or directory; the log goes here' err 1
	run "$way" env "PEERLANE_MR_WAYS=fast" "$@" unknown
	told "$way: an unknown way" 'there is no way "fast"' err 1
	run "$way" env "PEERLANE_MR_WAYS=dmabuf" "$@" forbidden
	told "$way: a way that is forbidden" 'plain not tried: PEERLANE_MR_WAYS forbids it' err 1

	run_alone "$way" env "PEERLANE_MR_STRICT=1" "$@" refused
	check_eq "$way: strict: the program ends (SIGABRT)" 134 "$run_status"
	told "$way: strict: and it is said why" 'PEERLANE_MR_STRICT is set: this ends the program' err 1
	run "$way" env "PEERLANE_MR_STRICT=0" "$@" refused
	check_eq "$way: strict 0 is not strict" 0 "$run_status"
done
finish
