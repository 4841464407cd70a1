# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# In the guest: UCX with buffers in GPU memory.  ucx_perftest -V compares all data, ucp_hello_world prints it.
#
#	serve NAME COMMAND PORT SIZE	COMMAND (perftest, hello) in the background, until it listens; $server
#	ended NAME STATUS FILE		it has ended well
#	both NAME COMMAND PORT SIZE	host b serves, a asks
#	by LABEL PORT TRANSPORT DEVICE	both commands, by that transport; perftest's messages are counted
#
# shellcheck source=scenarios/lib/guest/hosts.sh
. /case/lib/hosts.sh

export LD_LIBRARY_PATH=/case/ucx/lib UCX_MODULE_DIR=/case/ucx/lib/ucx UCX_LOG_LEVEL=warn UCX_WARN_UNUSED_ENV_VARS=n
# By default 128 fragments of 4 MiB at a time, half of the memory of the GPU here
export UCX_RNDV_FRAG_ALLOC_COUNT=host:8,cuda:8
# As "patient" does for programs without such a setting
export UCX_RC_TIMEOUT=4s
ucx=/case/ucx/bin

# perftest PORT SIZE [SERVER]
perftest() {
	UCX_PROTO_INFO=y timeout -s KILL 120 "$ucx/ucx_perftest" -t tag_lat -m cuda -n 10 -w 1 -f -V -p "$1" -s "$2" ${3:+"$3"}
}

# hello PORT SIZE [SERVER]
hello() {
	timeout -s KILL 120 "$ucx/ucp_hello_world" -m cuda -p "$1" -s "$2" ${3:+-n "$3"}
}

serve() {
	"$2" "$3" "$4" >"/tmp/$1.server" 2>&1 &
	server=$!
	check "$1: the server listens" listens "$3"
}

ended() {
	check_eq "$1" 0 "$2"
	check_eq "$1: UCX reports no error" "" "$(grep "UCX  ERROR" "$3" 2>&1)"
	grep -vF -e '+--' "$3" | cut -c1-150 | sed 's/^/# /'
}

both() {
	if [ "$HOST" = b ]; then
		serve "$@"
		barrier "$1"
		wait "$server"
		ended "$1: GPU memory goes from host to host, server" $? "/tmp/$1.server"
	else
		barrier "$1"
		"$2" "$3" "$4" "$(address_of b)" >"/tmp/$1.client" 2>&1
		ended "$1: GPU memory goes from host to host, client" $? "/tmp/$1.client"
	fi
	barrier "$1.end"
}

# said NAME: the message of ucp_hello_world, by value
said() {
	[ "$HOST" = a ] || return 0
	awk 'BEGIN { for (i = 0; i < 99999; i++) printf "%c", 65 + i % 26; print "" }' >/tmp/want
	check "$1: the message has arrived as it was" grep -qxFf /tmp/want "/tmp/$1.client"
}

by() {
	export UCX_TLS="$3,cuda_copy" UCX_NET_DEVICES="$4"
	counted_all "$1" both "$1" perftest "$2" 100000
	both "hello-$1" hello $(($2 + 1)) 100000
	said "hello-$1"
}
