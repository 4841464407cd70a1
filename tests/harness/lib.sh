# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# driver: a scenario of several hosts becomes the program ./driver, which works in ./o;
# what stands on standard input comes first in it, then hosts_boot with its arguments.
# Its QEMU is to be tests/harness/fake-qemu, which has nothing to save.
# guests: their part, from standard input; each says that it came to its end.

PEERLANE_SNAPSHOT=0
export PEERLANE_SNAPSHOT

driver() {
	{
		cat <<'END'
OUT=$PWD/o
cd "$OUT" || exit 1
. "$TOP/scenarios/lib/case.sh"
. "$TOP/scenarios/lib/machine/vm.sh"
. "$TOP/scenarios/lib/scenario.sh"
SC_TOPOLOGY=no-drive SC_KERNEL=7.2
. "$TOP/scenarios/lib/machine/hosts.sh"
END
		cat
		# shellcheck disable=SC2016 # the driver's
		echo 'hosts_boot "$@"'
		echo finish
	} >driver
}

guests() {
	mkdir -p o/case
	{
		cat
		echo 'echo "ok 1 - it came to its end"; echo 1..1'
	} >o/case/run
	sed -i '1i #!/bin/sh\n. ./host' o/case/run
	chmod +x o/case/run
}
