# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# Machines, as users name them: NAME[,KEY=VALUE]...  NAME is a file of
# scenarios/topologies without its ending, a line of scenarios/topologies/aliases,
# or a path with a slash in it.  KEY is one of the machine (cpu=EPYC), or a
# device's with its name (gpu0.coherent=on).  Source it with TOP set.
#
#	topology MODE MACHINE [IMAGES [WARNINGS]]	what topology.awk prints
#	topology_known MACHINE		fails when there is no such name or file
#	topology_names			of all machines that have one
#	topology_title MACHINE		what it is, in one sentence
#	topology_short MACHINE		its name in tables and of folders

topology_dir=$TOP/scenarios/topologies

# its file in topology_file, its overrides in topology_overrides
topology_resolve() {
	topology_file=${1%%,*}
	topology_overrides=${1#"$topology_file"}
	case $topology_file in
	*/*) ;;
	*)
		topology_of=$(awk -v name="$topology_file" '$1 == name { print $2 }' \
			"$topology_dir/aliases")
		topology_of=${topology_of:-$topology_file}
		topology_overrides=${topology_of#"${topology_of%%,*}"}$topology_overrides
		topology_file=$topology_dir/${topology_of%%,*}.topo
		;;
	esac
	topology_overrides=${topology_overrides#,}
}

topology() {
	topology_resolve "$2"
	awk -v mode="$1" -v images="${3-}" -v warnings="${4-}" -v ram="${5-}" \
		-v overrides="$topology_overrides" \
		-f "$TOP/scenarios/lib/machine/topology.awk" "$topology_file"
}

topology_known() {
	topology_resolve "$1"
	[ -r "$topology_file" ] && [ ! -d "$topology_file" ]
}

topology_names() {
	{
		for topology_each in "$topology_dir"/*.topo; do
			topology_each=${topology_each##*/}
			echo "${topology_each%.topo}"
		done
		sed 's/#.*//' "$topology_dir/aliases" | awk 'NF { print $1 }'
	} | LC_ALL=C sort
}

# the alias' own; or the file's first comment after the licence, to its first full
# stop, and the overrides
topology_title() {
	topology_said=$(awk -v name="$1" '$1 == name { sub(/^[^#]*# */, ""); print }' \
		"$topology_dir/aliases")
	if [ -z "$topology_said" ]; then
		topology_resolve "$1"
		topology_said=$(sed -n '/^#/!q; /SPDX/d; s/^# *//p' "$topology_file" |
			tr -s '[:space:]' ' ' | sed 's/[.] .*//; s/[. ]*$//')
		topology_said=$topology_said${topology_overrides:+, with $topology_overrides}
	fi
	printf '%s\n' "$topology_said"
}

topology_short() {
	topology_each=${1%%,*}
	topology_each=${topology_each##*/}
	printf '%s\n' "${topology_each%.topo}${1#"${1%%,*}"}"
}
