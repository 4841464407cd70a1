# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# conditions NAME: those of this scenario, a line each; what it does is left out.
# Source it with TOP set.

# shellcheck disable=SC2034 # for options.sh
PROGRAM=conditions
# shellcheck source=scenarios/lib/options.sh
. "$TOP/scenarios/lib/options.sh"

conditions() {
	case $(scenario_file "$1") in
	*/run) cat "$TOP/scenarios/$1/expect" ;;
	*.scn)
		(
			copy() { :; }
			expect() {
				for condition_set; do
					if [ "$condition_set" = - ]; then
						cat
					else
						cat "$TOP/scenarios/lib/conditions/$condition_set"
					fi
				done
			}
			# shellcheck source=/dev/null
			. "$(scenario_file "$1")"
		)
		;;
	esac
}
