# SPDX-License-Identifier: MIT
# The devices of a machine (topology.awk, mode=devices) as JSON, sizes in bytes: jq -nR with $name, $title and $params.
def bytes: capture("^(?<n>[0-9]+)(?<unit>[KMGT]?)")
	| (.n | tonumber) * ({"": 1, K: 1024, M: 1048576, G: 1073741824, T: 1099511627776}[.unit]);
def value: if .key | IN("vram", "bar1", "memory") then .value | bytes
	elif .key == "coherent" then .value == "on"
	elif .value | test("^(0|[1-9][0-9]*)$") then .value | tonumber
	else .value end;
[inputs | split(" ") | {name: .[0], kind: .[1], parent: .[2]}
	+ ([.[3:][] | capture("^(?<key>[^=]*)=(?<value>.*)$") | {key, value: value}] | from_entries)]
| {topology: $name, title: $title, kernel_parameters: $params,
   machine: (.[0] | {memory, cpus, cpu, iommu, nodes}), devices: .[1:]}
