# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# What cx-acs, cx-iommu and cx-two-root-ports share on the host's side: acts, each with a machine on which a ConnectX writes from
# GPU memory to GPU memory.  An act whose name ends with _untrusted is one where the kernel refuses.
#
# shellcheck source=scenarios/lib/acts.sh
. "$TOP/scenarios/lib/acts.sh"

ways_begin() {
	[ -n "$SC_OWN" ] || skip "$SC_NAME chooses its machines itself"
	sc_case
	printf '%s\n' rdma mlx5 >"$OUT/case/extras"
	sc_modules mlx5_ib ib_uverbs peerlane_gpu
	acts_begin
}

# Both ends are this card; how much of it came from host memory, it says itself
ways_end() {
	jq -c '. as $r | {transfers: [.facts | to_entries[] | .key as $label | .value.perf.transfers[]? |
		. + {label: $label, what: "rdma-source", metadata_bytes: 0,
			host_bytes: $r.counted[$label].cx.cx0["data-host-read"]}], routes: []}' \
		"$OUT/measured.json" >>"$OUT/acts.jsonl"
	acts_end
}
