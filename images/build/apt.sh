# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154
# The Debian mirror of the build, by the host's apt programs and a state folder of our own. Sourced on the host, with
# $work and $log set.

# private_apt STATE CMD...: the host's apt programs and its configuration (proxies, certificates), our own state.
private_apt() {
	pa_state=$1 pa_cmd=$2
	shift 2
	"$pa_cmd" -q -o "Dir::State=$pa_state" -o "Dir::State::Lists=$pa_state/lists" -o "Dir::State::status=$pa_state/status" \
		-o "Dir::Cache=$pa_state" -o "Dir::Cache::archives=$pa_state/archives" -o "Dir::Etc::preferences=/dev/null" \
		-o "Dir::Etc::preferencesparts=/dev/null" -o "APT::Sandbox::User=" -o "Acquire::Languages=none" \
		-o "APT::Architecture=amd64" -o "APT::Architectures=amd64" -o "Acquire::Retries=3" \
		-o "APT::Update::Post-Invoke=" -o "APT::Update::Post-Invoke-Success=" "$@"
}
# An archive of the past, which has a time in its address (20261124T000000Z), keeps lists that have expired
of_the_past() { grep -qE '/[0-9]{8}T[0-9]{6}Z( |/)' "$work/sources.list"; }
debian_apt() {
	debian_cmd=$1
	shift
	! of_the_past || set -- -o Acquire::Check-Valid-Until=false "$@"
	private_apt "$work/apt" "$debian_cmd" -o "Dir::Etc::sourcelist=$work/sources.list" -o "Dir::Etc::sourceparts=/dev/null" "$@"
}
# warn_moved WHAT PINNED USED: and keeps it in $work/warnings
warn_moved() {
	echo "WARNING: $1: pinned version $2 is gone from the mirror; using $3 instead" | tee -a "$work/warnings" >&2
}
newest() { # the newest of the versions on stdin
	new_best=
	while IFS= read -r new_one; do
		if [ -z "$new_best" ] || dpkg --compare-versions "$new_one" gt "$new_best"; then new_best=$new_one; fi
	done
	printf '%s\n' "$new_best"
}
versions_of() { debian_apt apt-cache madison "$1" 2>/dev/null | awk -F' *[|] *' '$3 ~ /Packages$/ { print $2 }' | sort -u; }
