#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: cases that need sources of others skip on a machine without them, each for a reason that tests/skips allows
# tags: harness
# tier: check
# timeout: 120
. "$TOP/scenarios/lib/case.sh"
need_tool unshare mount

# What they would build there stays here
mkdir -p build none
for part in userlib kernel guest; do
	ln -s "$BUILD/$part" "build/$part"
done

# skips CASE WITH REASON: the case, in a new folder, on a machine with the cache and the toolkit of the folder WITH
skips() {
	file=$TOP/tests/$1.sh
	rm -rf out
	mkdir out
	(
		export PEERLANE_CACHE="$PWD/$2" CUDA_HOME="$PWD/$2/cuda" BUILD="$PWD/build" OUT="$PWD/out"
		# The build root has the host's toolkit here, if there is one
		# shellcheck disable=SC2016 # of the inner shell
		exec unshare --map-root-user --mount sh -c '
			[ ! -d /usr/local/cuda ] || mount -t tmpfs none /usr/local/cuda || exit 1
			cd "$OUT" && exec sh "$1"' - "$file"
	) >said 2>&1
	check_eq "$1, with $2: it skips" 77 $?
	reason=$(sed -n 's/^1\.\.0 # SKIP //p' said)
	# shellcheck disable=SC2016 # of the inner shell
	check "$1, with $2: $3" sh -c 'printf "%s\n" "$1" | grep -q -E "^$2"' - "$reason" "$3"
	check "$1, with $2: tests/skips allows it" allowed "$1" "$reason"
}

# allowed CASE REASON: as tests/run reads the list
allowed() {
	tab=$(printf '\t')
	grep -v '^#' "$TOP/tests/skips" >list
	while IFS=$tab read -r of pattern why; do
		: "$why"
		# shellcheck disable=SC2254 # a pattern
		case $1 in
		$of) ! printf '%s\n' "$2" | grep -q -E "$pattern" || return 0 ;;
		esac
	done <list
	return 1
}

# A new machine has nothing
grep -l '^# tags:.* third-party' "$TOP"/tests/*/*.sh >cases
check "there are such cases" test "$(wc -l <cases)" -ge 6
while read -r file; do
	name=${file#"$TOP/tests/"}
	name=${name%.sh}
	skips "$name" none 'no (source of|DKMS|Icinga|Slurm|CUDA headers|CUDA 12 or 13|NCCL)'
done <cases

# Then come the sources, NVIDIA's header, and a toolkit without NCCL
sed -n 's/^program_source \([^ ]*\) \([^ ]*\)$/\1\/\2/p' "$TOP"/tests/programs/*.sh >wanted
check "programs name their sources" test -s wanted
while read -r source; do
	mkdir -p "sources/third-party/$(dirname "$source")"
	: >"sources/third-party/$source"
done <wanted
cp -R sources header
mkdir -p header/third-party/nvidia-open/nvidia toolkit/cuda/include
: >header/third-party/nvidia-open/nvidia/nv-p2p.h
: >toolkit/cuda/include/cuda_runtime.h
echo '#define CUDART_VERSION 13000' >toolkit/cuda/include/cuda_runtime_api.h
skips programs/gdrcopy sources 'no nv-p2p.h'
grep -l '^program_cuda$' "$TOP"/tests/programs/*.sh >cases
check "programs are built with them" test -s cases
while read -r file; do
	skips "programs/$(basename "$file" .sh)" header 'no CUDA headers: '
done <cases
skips programs/nccl toolkit 'no NCCL: '
finish
