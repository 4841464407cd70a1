# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# For cases that run libnvidia-ml on the fake driver of tests/cuda and the record of a
# machine; sourced after scenarios/lib/case.sh.
. "$TOP/tests/lib/userlib.sh"

# attribute GPU NAME TEXT: of a device by its address
attribute() {
	printf 'F /sys/bus/pci/devices/%s/%s %s\\n\n' "$1" "$2" "$3"
}

# system NAME TEXT: of the processors and NUMA nodes
system() {
	printf 'F /sys/devices/system/%s %s\\n\n' "$1" "$2"
}

# The fake driver has its GPUs in slot 1
record() { # NAME: of the machine that NAME.map describes
	awk -f "$TOP/tests/topo/record.awk" "$TOP/tests/nvml/$1.map" |
		sed 's/0000:0\([3-6]\):00\.0/0000:0\1:01.0/g'
	echo "D /sys/module/peerlane_gpu parameters"
	for gpu in 3 4 5 6; do
		attribute "0000:0$gpu:01.0" subsystem_vendor 0x1af4
		attribute "0000:0$gpu:01.0" subsystem_device 0x1100
	done
}

# records: with $processes on the first GPU, switches.rec, bridges.rec and no-driver.rec in this folder
records() {
	record bridges >bridges.rec
	# the third GPU's NUMA node is not known
	record switches | sed '/^F .*0000:05:01.0\/numa_node /s/ [0-9].*/ -1\\n/' >switches.rec
	records_port=$(sed -n 's|^L /sys/bus/pci/devices/0000:03:01.0 .*/\([^/]*\)/0000:03:01.0$|\1|p' switches.rec)
	{
		for gpu in 3 4 5; do
			attribute "0000:0$gpu:01.0" local_cpulist 0-3
		done
		attribute 0000:06:01.0 local_cpulist 4,64-65
		attribute 0000:03:01.0 current_link_speed "2.5 GT/s PCIe"
		attribute 0000:03:01.0 max_link_speed "32.0 GT/s PCIe"
		attribute 0000:03:01.0 current_link_width 4
		attribute 0000:03:01.0 max_link_width 16
		attribute "$records_port" max_link_speed "8.0 GT/s PCIe"
		attribute "$records_port" max_link_width 8
		attribute 0000:04:01.0 current_link_speed Unknown
		attribute 0000:04:01.0 current_link_width 0
		# process and bytes; 0: those that are not here
		attribute 0000:03:01.0 processes "${processes-1234 4194304\\n4194304 17179869184\\n0 65536}"
		attribute 0000:04:01.0 processes ""
		attribute 0000:05:01.0 processes "12 MiB"
		# processors 0 to 3 are node 0, 8 to 15 node 2 of the same socket
		for cpu in 0 1 2 3; do
			system "cpu/cpu$cpu/topology/package_cpus_list" 0-3,8-15
		done
		system node/online 0-2
		system node/node0/cpulist 0-3
		system node/node1/cpulist 4,64-65
		system node/node2/cpulist 8-15
	} >>switches.rec
	cat >no-driver.rec <<-'END'
		V 1
		E /sys/module/peerlane_gpu ENOENT
		D /sys/bus/pci/devices
		E /sys/bus/pci/devices/0000:03:01.0/device ENOENT
	END
}
