#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: peerlane doctor for monitoring: Prometheus, Nagios, the schema of its JSON, Slurm's prolog
# tags: doctor
# tier: check
# timeout: 60

. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/doctor/lib.sh"

known_nodes

# ---- the checker of the schema: it sees what it must see ----
doctor 2 --from staged.rec --json
cp out good.json
# shape_says DESC FILTER MISTAKE [SCHEMA]: what the checker says of good.json changed by FILTER
shape_says() {
	jq -c "$2" good.json >bad.json
	jq -r --slurpfile schema "${4:-doctor.schema.json}" \
		-f "$TOP/tests/doctor/schema.jq" bad.json >said 2>&1
	check_eq "the schema's checker: $1" "$3" "$(cat said)"
}
shape_says "what is printed" . ""
shape_says "a word that is none of the list" '.verdict = "heal"' \
	'.verdict: heal is none of ["healthy","degraded","broken"]'
shape_says "a key that is missing" 'del(.findings[0].cure)' '.findings[0]: cure is missing'
shape_says "a key that nobody knows" '.findings[0].x = 1' '.findings[0]: x is not in the schema'
shape_says "… which a version to come may add" '.findings[0].x = 1 | .y = {} | .sections.z = {}' "" "$TOP/docs/reference/doctor.schema.json"
shape_says "another type" '.findings[0].where[0] = 1' '.findings[0].where[0]: is of type integer, not string'
shape_says "a text in a section" '.sections.acs.x = null' '.sections.acs.x: is of type null, not string'

# ---- Prometheus ----
# metric LINE: it is there, once
metric() {
	check_eq "metric: $1" 1 "$(grep -c -x -F -e "$1" metrics.prom)"
}
echo old >metrics.prom
doctor 2 --from staged.rec --prometheus metrics.prom
check "… and the text is printed, too" grep -q '^broken:' out
metric 'peerlane_doctor_verdict{verdict="broken"} 1'
metric 'peerlane_doctor_verdict{verdict="healthy"} 0'
metric 'peerlane_doctor_findings{severity="error"} 1'
metric 'peerlane_doctor_finding{id="acs-redirect",section="acs",severity="error"} 1'
metric 'peerlane_doctor_unknown_facts 0'
check_eq "its mode" 644 "$(stat -c %a metrics.prom)"
check_eq "nothing is left beside it" metrics.prom "$(echo metrics.prom*)"
doctor 1 --from dgx.rec --prometheus metrics.prom
doctor 1 --from dgx.rec --json
check_eq "each label set is there once" "" "$(grep -v '^#' metrics.prom | sed 's/ [^ ]*$//' | sort | uniq -d)"
check_eq "places are counted" "$(jq '[.findings[] | select(.id == "acs-redirect").where | length] | add' out)" \
	"$(sed -n 's/^peerlane_doctor_finding{id="acs-redirect".*} //p' metrics.prom)"
# shellcheck disable=SC2016
check "each metric has its help and type before it" awk '
	/^# HELP / { help = $3; next }
	/^# TYPE / { if ($3 != help || $4 != "gauge") exit 1; type = $3; next }
	{ sub(/[{ ].*/, ""); if ($0 != type) exit 1 }' metrics.prom
doctor 2 --from staged.rec --prometheus metrics.prom '/data/a"b\c' 0
metric 'peerlane_doctor_path{file="/data/a\"b\\c",path="bounce"} 1'

# what no place is told of counts once; two findings of one rule are one metric; what is unknown counts
awk -f "$TOP/tests/topo/record.awk" "$TOP/tests/topo/records/eight-phb.map" >phb.rec
doctor 2 --from phb.rec --prometheus metrics.prom
metric 'peerlane_doctor_finding{id="kernel-no-p2pdma",section="kernel",severity="error"} 1'
metric 'peerlane_doctor_unknown_facts 5'
cat >twice.patch <<'END'
F @PCI/0000:03:00.0/current_link_width 8\n
F @PCI/0000:04:00.0/current_link_speed 8.0 GT/s PCIe\n
END
record "$base" twice.patch >twice.rec
doctor 1 --from twice.rec --prometheus metrics.prom
metric 'peerlane_doctor_findings{severity="warning"} 2'
check_eq "one metric for both" 'peerlane_doctor_finding{id="link-slow",section="host-bridge",severity="warning"} 2' \
	"$(grep 'id="link-slow"' metrics.prom)"
doctor 2 --from staged.rec --prometheus metrics.prom '/data/a
b' 0
metric 'peerlane_doctor_path{file="/data/a\nb",path="bounce"} 1'
doctor 73 --from healthy.rec --prometheus no/such/folder
check "… says which" grep -q 'no/such/folder cannot be written' err
mkdir folder
doctor 73 --from healthy.rec --prometheus folder
check_eq "… and leaves nothing there" folder "$(echo folder*)"
# as /dev/stdout is one; to be root is enough to put a file in its place
ln -s /proc/self/fd/1 link
doctor 0 --from healthy.rec --prometheus link
check "a link is written through" grep -q '^peerlane_doctor_findings' out
check "… and stays one" test -L link
echo old >target
ln -sf target link
doctor 0 --from healthy.rec --prometheus link
check "what a link leads to is replaced" grep -q '^peerlane_doctor_findings' target
check "… and it stays a link" test -L link
check_eq "… with nothing beside it" "target" "$(echo target*)"
# a device of our own where that is allowed: a tool with this error would put a file in the place of the machine's
{ mknod full c 1 7 && : >full; } 2>/dev/null || ln -sf /dev/full full
doctor 73 --from healthy.rec --prometheus full
check "a device that is full is named" grep -q 'full cannot be written: No space left' err
mkfifo pipe
doctor 73 --from healthy.rec --prometheus pipe
check "a pipe that nobody reads is an error" grep -q 'pipe cannot be written' err
doctor 64 --list --prometheus metrics.prom

# ---- Nagios ----
doctor 0 --from healthy.rec --nagios
check_eq "OK" 'PEERLANE OK - healthy | errors=0;;0 warnings=0;0 unknown_facts=0' "$(cat out)"
doctor 2 --from staged.rec --nagios
check_eq "CRITICAL" 'PEERLANE CRITICAL - broken: acs-redirect | errors=1;;0 warnings=0;0 unknown_facts=0' \
	"$(cat out)"
doctor 1 --from dgx.rec --nagios
check "WARNING" grep -q '^PEERLANE WARNING - degraded: .*acs-redirect' out
check_eq "one line" 1 "$(wc -l <out)"
check_eq "what is only to know is not said" "" "$(grep -o pair-nic out)"
doctor 1 --from twice.rec --nagios
check_eq "a rule once" "PEERLANE WARNING - degraded: link-slow | errors=0;;0 warnings=2;0 unknown_facts=0" "$(cat out)"
doctor 2 --from staged.rec --nagios '/data/a|b' 0
check_eq "a bar only before the figures" 2 "$(tr '|' '\n' <out | wc -l)"
check "… and the path" grep -q '^PEERLANE CRITICAL - broken: bounce: /data/a b into GPU0' out
doctor 2 --from staged.rec --nagios '/data/a
b' 0
check_eq "a line end is a blank" 1 "$(wc -l <out)"
doctor 3 --nagios --from no-such.rec
check "UNKNOWN: the error is what is printed" grep -q 'no-such.rec' out
check_eq "… and nothing else" "" "$(cat err)"
doctor 3 --nagios --json --from healthy.rec
check "two outputs" grep -q 'choose one' out

# ---- Slurm's prolog ----
prolog=$TOP/userlib/deploy/slurm/peerlane-prolog
mkdir bin
cat >bin/peerlane <<'END'
#!/bin/sh
exec "$REAL_PEERLANE" "$@" --from "$RECORD"
END
cat >bin/scontrol <<'END'
#!/bin/sh
printf '%s\n' "$@" >scontrol.said
END
cat >bin/logger <<'END'
#!/bin/sh
printf '%s\n' "$*" >>logger.said
END
chmod +x bin/*
REAL_PEERLANE=$tool
export REAL_PEERLANE
# prolog STATUS RECORD VARIABLE…: runs it as slurmd does, with no PATH; bin/ is /usr/local/bin, where make install puts peerlane
prolog() {
	prolog_want=$1
	RECORD=$2
	shift 2
	rm -f scontrol.said logger.said
	# shellcheck disable=SC2016 # of the inner shell
	unshare --map-root-user --mount sh -c 'mount --bind "$1" /usr/local/bin && shift && exec env -i "$@"' - "$PWD/bin" \
		RECORD="$PWD/$RECORD" REAL_PEERLANE="$tool" SLURM_JOB_ID=7 SLURMD_NODENAME=node1 "$@" /bin/sh "$prolog" >out 2>err
	check_eq "prolog: status $prolog_want: $RECORD $*" "$prolog_want" "$?" || sed 's/^/# /' err
}
prolog 0 healthy.rec SLURM_JOB_GPUS=0
check_false "… nothing is said" test -e scontrol.said
prolog 0 dgx.rec SLURM_JOB_GPUS=0
check "a degraded node is noted" grep -q 'WARNING' logger.said
check_false "… and stays" test -e scontrol.said
prolog 1 staged.rec SLURM_JOB_GPUS=0
check "a broken node is drained" grep -q -x 'State=DRAIN' scontrol.said
check "… by its name" grep -q -x 'NodeName=node1' scontrol.said
check "… and the reason says why" grep -q '^Reason=PEERLANE CRITICAL.*acs-redirect' scontrol.said
prolog 0 staged.rec
check_false "a job without GPUs is none of its business" test -e scontrol.said
prolog 1 staged.rec SLURM_JOB_GPUS=0 PEERLANE_PROLOG_PATH=/data/x
check "of a path" grep -q '^Reason=PEERLANE CRITICAL.*bounce' scontrol.said
prolog 0 no-such.rec SLURM_JOB_GPUS=0
check "a doctor that cannot tell drains nothing" test ! -e scontrol.said
check "… and is noted" grep -q 'no-such.rec' logger.said
# noted TEXT: the job runs, and the log says why
noted() {
	prolog 0 staged.rec SLURM_JOB_GPUS=0
	check_eq "… and the log says why" "-t peerlane-prolog job 7: $1" "$(cat logger.said)"
	check_false "… and the node stays" test -e scontrol.said
}
mv bin/peerlane peerlane.works
noted "status 127: there is no peerlane in /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
echo >bin/peerlane
noted "status 126: peerlane in /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin cannot be executed"
# a doctor that hangs, and a minute that is shorter
printf '#!/bin/sh\nexec sleep 60\n' >bin/peerlane
printf '#!/bin/sh\nshift\nexec /usr/bin/timeout 0.2 "$@"\n' >bin/timeout
chmod +x bin/peerlane bin/timeout
noted "status 124: peerlane doctor did not end within 60 seconds"
rm bin/timeout
mv peerlane.works bin/peerlane

# ---- systemd's unit ----
need_tool systemd-analyze
units=$TOP/userlib/deploy/systemd
# shellcheck disable=SC2016 # of the inner shell
unshare --map-root-user --mount sh -c 'mount --bind "$1" /usr/local/bin && shift && exec systemd-analyze verify --man=no "$@"' - "$PWD/bin" \
	"$units/peerlane-doctor.service" "$units/peerlane-doctor.timer" >said 2>&1
check_eq "systemd takes the unit and its timer" "0 " "$? $(cat said)"
# forbidden UNIT: the families of addresses that doctor opens and the unit forbids
forbidden() {
	sed -n 's/^RestrictAddressFamilies=//p' "$1" | tr " " "\n" >allowed
	grep -rhoE --include='*.c' --exclude-dir=test '\<socket(pair)?\(AF_[A-Z0-9]+' "$TOP/userlib/core" "$TOP/userlib/tools/doctor" |
		sed 's/.*(//' | sort -u | grep -vxFf allowed
}
check_eq "the unit allows each family of addresses that doctor opens" "" "$(forbidden "$units/peerlane-doctor.service")"
sed 's/ AF_NETLINK//' "$units/peerlane-doctor.service" >unit
check_eq "… and one that it forbids is found" AF_NETLINK "$(forbidden unit)"

# ---- the node's label in Kubernetes ----
node=$TOP/userlib/deploy/kubernetes/peerlane-node
mkdir features metrics
# label STATUS RECORD VERDICT: one round of peerlane-node
label() {
	RECORD=$PWD/$2 PATH="$PWD/bin:$PATH" PEERLANE_FEATURES=features PEERLANE_METRICS=metrics \
		PEERLANE_ROUNDS=1 sh "$node" >out 2>err
	check_eq "node: status $1: $2" "$1" "$?"
	check_eq "… its label" "feature.node.kubernetes.io/peerlane.doctor=$3" "$(sed -n 2p features/peerlane)"
}
export RECORD
label 0 healthy.rec healthy
check "its metrics" grep -q -x 'peerlane_doctor_verdict{verdict="healthy"} 1' metrics/peerlane.prom
until=$(sed -n 's/^# +expiry-time=//p' features/peerlane)
check "the label expires between now and an hour" test "$(date -d "$until" +%s)" -gt "$(date +%s)" -a \
	"$(date -d "$until" +%s)" -lt "$(($(date +%s) + 3600))"
label 0 dgx.rec degraded
label 0 staged.rec broken
label 0 no-such.rec unknown
check "the reason is in the pod's log" grep -q 'no-such.rec' out
check_eq "nothing else is in the folder" peerlane "$(ls -A features)"
RECORD=$PWD/healthy.rec PATH="$PWD/bin:$PATH" PEERLANE_FEATURES=features PEERLANE_METRICS=no/folder \
	PEERLANE_ROUNDS=1 sh "$node" >out 2>err
check "metrics that cannot be written are told" grep -q "no/folder/peerlane.prom cannot be written" out
check_eq "… and do not change the label" "feature.node.kubernetes.io/peerlane.doctor=healthy" "$(sed -n 2p features/peerlane)"
# what a pod sees without the devices of the host: the manifest has to mount them
sed "s,^D /dev .*,D /dev null pts shm zero," healthy.rec >pod.rec
RECORD=pod.rec
label 0 pod.rec broken
check "the reason is the pod" grep -q container-no-gpu-node out
manifest=$TOP/userlib/deploy/kubernetes/peerlane-doctor.json
# kubernetes_says FILTER: what its API says of each object of the manifest changed by FILTER: nothing, or the mistakes
kubernetes_says() {
	jq -c "$1 | .items[]" "$manifest" | while IFS= read -r item; do
		printf '%s\n' "$item" >item.json
		jq --arg kind "$(jq -r .kind item.json)" '. + {"$ref": "#/$defs/\($kind)"}' "$TOP/tests/doctor/kubernetes.schema.json" >item.schema
		jq -r --slurpfile schema item.schema -f "$TOP/tests/doctor/schema.jq" item.json 2>&1
	done
}
check_eq "the manifest is a list of two objects" "List v1 Namespace DaemonSet" "$(jq -r '.kind, .apiVersion, .items[].kind' "$manifest" | xargs)"
check_eq "Kubernetes' API takes them, and has no key that it does not know" "" "$(kubernetes_says .)"
set='(.items[] | select(.kind == "DaemonSet").spec.template.spec)'
check_eq "it would refuse a key with a mistake" ".spec.template.spec.containers[0].volumeMounts[0]: readonly is not in the schema" \
	"$(kubernetes_says "$set.containers[0].volumeMounts[0].readonly = true")"
check_eq "a text that has to be none" ".spec.template.spec.hostPID: is of type string, not boolean" "$(kubernetes_says "$set.hostPID = \"true\"")"
check_eq "a word that it does not have" '.spec.template.spec.tolerations[0].operator: Any is none of ["Exists","Equal"]' \
	"$(kubernetes_says "$set.tolerations[0].operator = \"Any\"")"
check_eq "a key that is missing" ".spec.template.spec.volumes[0].hostPath: path is missing" "$(kubernetes_says "del($set.volumes[0].hostPath.path)")"
check_eq "an object of another version" '.apiVersion: v1 is none of ["apps/v1"]' "$(kubernetes_says '.items[1].apiVersion = "v1"')"
check_eq "names are as it takes them" "" "$(jq -r '.items[] | .metadata.name, (.spec.template.spec | select(.) | .containers[].name, .volumes[].name)' \
	"$manifest" | grep -vxE '[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?')"
check "the manifest: the set selects its own pods" jq -e '.items[] | select(.kind == "DaemonSet").spec |
	.selector.matchLabels == .template.metadata.labels' "$manifest"
check "… mounts are volumes, and each volume is mounted" jq -e '.items[] | select(.kind == "DaemonSet").spec.template.spec |
	([.volumes[].name] | sort) == ([.containers[0].volumeMounts[].name] | sort)' "$manifest"
check "so the manifest mounts /dev" jq -e '.items[] | select(.kind == "DaemonSet").spec.template.spec |
	any(.volumes[]; .hostPath.path == "/dev") and any(.containers[0].volumeMounts[]; .mountPath == "/dev" and .readOnly)' "$manifest"
# shellcheck disable=SC2016
check "… its variables are folders that are mounted, and the program knows them" jq -e --rawfile node "$node" '
	.items[] | select(.kind == "DaemonSet").spec.template.spec.containers[0] |
	[.volumeMounts[].mountPath] as $mounts |
	all(.env[]; .name as $n | ($node | contains($n)) and (.value | IN($mounts[])))' "$manifest"
finish
