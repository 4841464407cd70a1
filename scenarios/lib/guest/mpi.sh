# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# shellcheck disable=SC2154 # from hosts.sh
#
# The guest of mpi and cx-mpi: Open MPI over UCX on two hosts.
#
#	mpi_up DEVICE NETWORK		ssh works; UCX is to use these, and $mpi_tls: rc_verbs, tcp and self
#	mpi_run LABEL ARGUMENTS…	mpi-gpu on both hosts, counted; what it reports is the fact LABEL
#	mpi_transport			the fact that says what UCX has sent by
#
# What $mpi_exports names, of the environment of host a, holds on both.
#
# shellcheck source=scenarios/lib/guest/hosts.sh
. /case/lib/hosts.sh

mpi_up() {
	mpi_device=$1
	mpi_network=$2
	: "${mpi_tls:=rc_verbs,tcp,self}"
	must ip link set lo up
	for mpi_each in a b; do
		echo "$(address_of "$mpi_each") $mpi_each"
	done >/etc/hosts
	# ssh from host a to all, as mpirun needs it
	mkdir -p /root/.ssh /etc/dropbear
	chmod 700 /root /root/.ssh
	if [ "$HOST" = a ]; then
		must dropbearkey -t ed25519 -f /root/.ssh/id_dropbear
		publish key "$(dropbearkey -y -f /root/.ssh/id_dropbear | grep '^ssh-')"
	fi
	await key >/root/.ssh/authorized_keys || finish
	must dropbear -R -s -p 22
	must listens 22
	barrier ssh
}

# Debian's configuration of Open MPI leaves UCX out, so it is asked for.  UCX connects by TCP (its other way, UD, does not get
# through soft-RoCE in this version), sends by reliable connections, and is told to let the NIC read what is longer than
# 16 KiB: it takes copying to be faster here.  The ssh keys of the hosts are as new as the hosts: -y -y.
mpi_on_all() {
	[ "$HOST" = a ] || return 0
	mpi_options=
	for mpi_each in ${mpi_exports-}; do
		mpi_options="$mpi_options -x $mpi_each"
	done
	# shellcheck disable=SC2086 # words
	timeout 200 mpirun --allow-run-as-root --host a:1,b:1 -np 2 --map-by node \
		--prtemca plm_ssh_agent "dbclient -y -y" --mca pml ucx --mca osc ucx \
		-x UCX_TLS="$mpi_tls" -x UCX_NET_DEVICES="$mpi_device,$mpi_network" -x UCX_RNDV_THRESH=16k \
		-x UCX_RNDV_SCHEME=get_zcopy -x UCX_LOG_LEVEL=info $mpi_options \
		/case/mpi-gpu "$@" >"/tmp/$mpi_label.out" 2>"/tmp/$mpi_label.err"
}

mpi_run() {
	mpi_label=$1
	shift
	counted_all "$mpi_label" mpi_on_all "$@"
	[ "$HOST" = a ] || return 0
	cat "/tmp/$mpi_label.out" "/tmp/$mpi_label.err" | cut -c1-200 | sed 's/^/# /'
	[ "$counted_status" -ne 0 ] || fact "$mpi_label" "$(grep '^{' "/tmp/$mpi_label.out")"
}

mpi_transport() {
	[ "$HOST" != a ] || text transport "$(sed -n 's/.* inter-node cfg#[0-9]* //p' "/tmp/$mpi_label.out" "/tmp/$mpi_label.err" |
		head -n 1)"
}
