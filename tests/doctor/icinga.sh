#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: Icinga takes userlib/deploy/icinga/peerlane.conf, runs the check, and reads its four states
# tags: doctor third-party
# tier: check
# timeout: 60

. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/doctor/lib.sh"
. "$TOP/tests/lib/stopwatch.sh"
others=$PEERLANE_CACHE/third-party
for each in icinga2 icinga2-files boost-context boost-coroutine boost-filesystem boost-program-options; do
	[ -d "$others/$each" ] || skip "no Icinga: there is no $others/$each; run \`make third-party\`"
done
# Icinga wants names of user and group, which a build root need not know; root has them, also one in a namespace of its own
as=
if ! { id -un && id -gn; } >names 2>&1; then
	as="unshare --user --map-root-user"
	$as true 2>>names || skip "this user has no name, which Icinga wants"
fi

# ---- hosts, of which each has the record of its name; the last has no GPU ----
known_nodes
mkdir data cache run run/cmd logs hosts results
# peerlane, which reads the record that the path names and has no GPU or file to look at
cat >peerlane <<END
#!/bin/sh
for last; do :; done
printf '%s\n' "\$*" >>"$OUT/said"
exec "$tool" doctor --nagios --from "$OUT/\${last#/data/}.rec"
END
chmod +x peerlane
sed "s,\"/usr/bin/peerlane\",\"$OUT/peerlane\"," "$TOP/userlib/deploy/icinga/peerlane.conf" >peerlane.conf
cat >icinga2.conf <<END
const PluginDir = "/usr/lib/nagios/plugins"
include <itl>
include "$others/icinga2-files/conf.d/templates.conf"
include "$OUT/peerlane.conf"
for (name in [ "healthy", "dgx", "staged", "unknown", "nothing" ]) {
	object Host name use (name) {
		import "generic-host"
		check_command = "dummy"
		if (name != "nothing") { vars.gpus = 1 }
		vars.peerlane_path = "/data/" + name
		if (name == "dgx") { vars.peerlane_gpu = 3 }
	}
}
object CheckerComponent "checker" { }
object ExternalCommandListener "commands" { command_path = "$OUT/commands" }
object PerfdataWriter "results" {
	rotation_interval = 1s
	host_temp_path = "$OUT/hosts/new"
	host_perfdata_path = "$OUT/hosts/of"
	service_temp_path = "$OUT/results-new"
	service_perfdata_path = "$OUT/results/of"
	service_format_template = "\$host.name\$ \$service.name\$ \$service.state\$: \$service.output\$, figures: \$service.perfdata\$"
}
END
# icinga FILE [OPTION...]: the daemon, with all that it writes in here
icinga() {
	icinga_file=$1
	shift
	LD_LIBRARY_PATH=$others/boost-context:$others/boost-coroutine:$others/boost-filesystem:$others/boost-program-options \
		exec $as "$others/icinga2/icinga2" -X daemon -c "$icinga_file" -I "$others/icinga2-files/include" -D "RunAsUser=$($as id -un)" \
		-D "RunAsGroup=$($as id -gn)" -D "DataDir=$OUT/data" -D "CacheDir=$OUT/cache" -D "InitRunDir=$OUT/run" -D "LogDir=$OUT/logs" "$@"
}
valid() { (icinga "$1" -C); }

check "the file is valid, with what Debian's Icinga has" valid icinga2.conf || finish
check_eq "… four hosts of five have the service" "Instantiated 4 Services" "$(grep -o 'Instantiated .* Services*' .check)"
# broken DESC WORDS SED: the file, changed by SED, is refused
broken() {
	sed "$3" peerlane.conf >broken.conf
	sed 's,/peerlane\.conf",/broken.conf",' icinga2.conf >broken2.conf
	check_fails "$1" "$2" valid broken2.conf
}
broken "another command is refused" "does not exist" 's/check_command = .*/check_command = "peerlan"/'
broken "a key that it does not know" "check_intervall" 's/check_interval/check_intervall/'
broken "a brace that is missing" "syntax error|unexpected" '$d'

# ---- the daemon itself: each check is forced, as it would else take its time ----
(icinga icinga2.conf) >daemon.log 2>&1 &
at_exit "kill -TERM $! 2>/dev/null; wait $!"
check "the daemon takes commands" wait_for 15 test -p commands || finish
now=$(date +%s)
for host in healthy dgx staged unknown; do
	echo "[$now] SCHEDULE_FORCED_SVC_CHECK;$host;peerlane;$now"
done >commands
# shellcheck disable=SC2016 # of the inner shell
check "it has run each" wait_for 15 sh -c '[ "$(cat results/* 2>/dev/null | cut -d " " -f 1 | sort -u | wc -l)" = 4 ]' || diag "$(cat daemon.log)"
# state HOST WANT: what Icinga holds of it: its state, the text, the performance data; a beginning is enough
state() {
	check_eq "$1" "$1 peerlane $2" "$(cat results/* | grep "^$1 " | sort -u | grep -oF "$1 peerlane $2")"
}
state healthy "OK: PEERLANE OK - healthy , figures: errors=0;;0 warnings=0;0 unknown_facts=0"
state dgx "WARNING: PEERLANE WARNING - degraded: acs-redirect, "
state staged "CRITICAL: PEERLANE CRITICAL - broken: acs-redirect , figures: errors=1;;0 warnings=0;0 unknown_facts=0"
state unknown "UNKNOWN: "
check "… because of the record" grep -q 'unknown peerlane UNKNOWN: .*unknown.rec' results/*
check_eq "the arguments are those of the host" "doctor --nagios --gpu 3 /data/dgx
doctor --nagios /data/healthy
doctor --nagios /data/staged
doctor --nagios /data/unknown" "$(sort -u said)"
finish
