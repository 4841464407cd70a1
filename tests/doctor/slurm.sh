#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: Slurm's controller and daemon with the prolog, as the guide has it: a broken node is drained, its job waits, others run
# tags: doctor third-party
# tier: all
# timeout: 180

. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/doctor/lib.sh"
need_tool unshare ip
others=$PEERLANE_CACHE/third-party
for each in slurmctld slurmd slurm-client slurm-plugins; do
	[ -d "$others/$each" ] || skip "no Slurm: there is no $others/$each; run \`make third-party\`"
done
[ "$(id -u)" = 0 ] || skip "only root can give a job its user"

known_nodes

# ---- a node: /usr/local/bin with Slurm and peerlane, which reads the record that "now" names; /etc with the guide's lines ----
at_exit 'rm -rf "$OUT/bin" "$OUT/etc" "$OUT/control" "$OUT/spool"'
mkdir bin control spool
for program in slurmctld/slurmctld slurmd/slurmd slurmd/slurmstepd; do
	cp "$others/$program-wlm" "bin/${program#*/}"
done
cp "$others"/slurm-client/* bin/
cat >bin/peerlane <<END
#!/bin/sh
exec "$tool" "\$@" --from "$OUT/\$(cat "$OUT/now").rec"
END
chmod +x bin/peerlane
cp -a /etc etc
echo "$others/slurm-plugins/slurm-wlm" >>etc/ld.so.conf
/sbin/ldconfig -f "$OUT/etc/ld.so.conf" -C "$OUT/etc/ld.so.cache"
mkdir -p etc/slurm
cp "$TOP/userlib/deploy/slurm/peerlane-prolog" etc/slurm/
awk '/^## / { slurm = /Slurm/ } slurm && /^    [A-Z][A-Za-z]*=/ { sub(/^ */, ""); print }' "$TOP/docs/how-to/watch-a-cluster.md" >guide.conf
check_eq "the guide has lines for slurm.conf" "Prolog PrologFlags SelectType SchedulerParameters" "$(sed 's/=.*//' guide.conf | xargs)"
cat guide.conf - >etc/slurm/slurm.conf <<END
ClusterName=test
SlurmctldHost=node1(10.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
PluginDir=$others/slurm-plugins/slurm-wlm
StateSaveLocation=$OUT/control
SlurmdSpoolDir=$OUT/spool
SlurmctldPidFile=$OUT/control/pid
SlurmdPidFile=$OUT/spool/pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
GresTypes=gpu
NodeName=node1 NodeAddr=10.0.0.1 CPUs=1 Gres=gpu:1
PartitionName=all Nodes=node1 Default=YES
END
echo 'NodeName=node1 Name=gpu File=/dev/null' >etc/slurm/gres.conf
echo 'CgroupPlugin=disabled' >etc/slurm/cgroup.conf

# ---- what happens there, one fact to a line of "facts" ----
cat >node <<'END'
. "$TOP/tests/lib/stopwatch.sh"
hostname node1
# glibc looks no address up where there is only the loopback's
ip link set lo up && ip address add 10.0.0.1/24 dev lo && mount --bind etc /etc && mount --bind bin /usr/local/bin || exit 125
export SLURM_CONF=/etc/slurm/slurm.conf PATH=/usr/local/bin:$PATH
echo healthy >now
slurmctld -D >slurmctld.log 2>&1 &
slurmd -D -N node1 -d /usr/local/bin/slurmstepd >slurmd.log 2>&1 &
is() { [ "$(sinfo -h -o %T)" = "$1" ]; }
wait_for 30 is idle || exit 124
# job NAME OPTION...: its number; it writes its GPUs to NAME.ran
job() {
	name=$1
	shift
	sbatch --parsable --output /dev/null "$@" --wrap "echo \"GPUs: \$SLURM_JOB_GPUS\" >$OUT/$name.new && mv $OUT/$name.new $OUT/$name.ran"
}
ran() {
	if wait_for 20 test -e "$1.ran"; then
		echo "$1 $(cat "$1.ran")"
	else
		echo "$1 did not run"
	fi
}
job healthy --gres=gpu:1
ran healthy
echo staged >now
job without-gpu
ran without-gpu
waits=$(job staged --gres=gpu:1)
wait_for 20 is drained
echo "node $(sinfo -h -o %T): $(scontrol show node node1 | sed -n 's/^ *Reason=\(.*\) \[root@.*/\1/p')"
# held jobs have the priority 0
echo "staged $(squeue -h -j "$waits" -o '%T' | head -n 1), held: $(scontrol show job "$waits" | grep -c 'Priority=0 ')"
[ ! -e staged.ran ] || echo "staged ran"
echo healthy >now
scontrol update NodeName=node1 State=RESUME
wait_for 20 is idle
job cured --gres=gpu:1
ran cured
END
unshare --uts --net --mount --pid --mount-proc --fork --kill-child sh node >facts 2>errors
check_eq "the node has done all of it" 0 $? || diag "$(cat errors; tail -n 20 slurmctld.log slurmd.log)"
# fact DESC LINE
fact() {
	check "$1" grep -qxF -e "$2" facts || diag "$(cat facts errors; tail -n 20 slurmctld.log; tail -n 20 slurmd.log)"
}
fact "on a healthy node a job with a GPU runs, and the script is passed the GPU" "healthy GPUs: 0"
fact "on a broken one, a job without" "without-gpu GPUs: "
fact "a job with a GPU has it drained, and the reason is doctor's line" "node drained: PEERLANE CRITICAL - broken: acs-redirect"
fact "the job waits, and is not held" "staged PENDING, held: 0"
check_false "it did not run there" grep -qx "staged ran" facts
fact "cured and resumed, the node takes jobs again" "cured GPUs: 0"
finish
