#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: nvidia-smi on a fake driver: its commands, what scripts read, the matrix of peerlane topo, errors
# tags: nvml
# tier: check
# timeout: 120
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/nvml/lib.sh"
tool=$BUILD/userlib/peerlane
need_file "$tool"

build_userlib nvml tests
# A name may have what a terminal takes for a command
esc=$(printf '\033')
ln -s "$(command -v sleep)" "$OUT/a${esc}name"
"$OUT/a${esc}name" 120 &
own=$!
at_exit 'kill "$own" 2>/dev/null || :'
processes="$own 8388608\\n4194304 1048576\\n0 65536" records
smi() {
	PEERLANE_FAKE_GPUS=${gpus-4} PEERLANE_FAKE_MACHINE=$OUT/${machine-switches}.rec \
		"$BUILD/userlib/tests/host/nvidia-smi" "$@"
}
uuid=GPU-10111213-1415-1617-1819-1a1b1c1d1e1f # of the fake driver's second GPU

check_eq "-L, one GPU" "GPU 1: Peerlane emulated GPU (UUID: $uuid)" "$(smi -L -i 1)"
check_eq "-L, all" 4 "$(smi -L | wc -l)"
check_eq "by UUID, by address, several" "GPU 1
GPU 3" "$(smi -L -i "$uuid,0000:06:01.0" | cut -d: -f1)"
fields=index,name,uuid,pci.bus_id,memory.total,memory.used,driver_version
# as nvml.h says
version=580.$(sed -n 's/^#define PLN_VERSION_M[A-Z]*[[:blank:]]//p' "$TOP/userlib/include/peerlane/peerlane.h" | paste -sd.)
row="1, Peerlane emulated GPU, $uuid, 00000000:04:01.0"
check_eq "--query-gpu" "index, name, uuid, pci.bus_id, memory.total [MiB], memory.used [MiB], driver_version
$row, 256 MiB, 0 MiB, $version" "$(smi --query-gpu=$fields --format=csv -i 1)"
check_eq "noheader, nounits" "$row, 256, 0, $version" \
	"$(smi --query-gpu=$fields --format=csv,noheader,nounits -i 1)"
check_eq "names that mean the same, blanks, what nobody knows" "Peerlane emulated GPU, [N/A], [N/A], [N/A]" \
	"$(smi --query-gpu='gpu_name, temperature.gpu, power.draw,utilization.gpu' --format=csv,noheader -i 0)"
check_eq "links" "1, 3, 5, 4, 8" "$(smi -i 0 --format=csv,noheader \
	--query-gpu=pcie.link.gen.current,pcie.link.gen.max,pcie.link.gen.gpumax,pcie.link.width.current,pcie.link.width.max)"
check_eq "ids" "0x9E711234, 0x11001AF4" "$(smi -i 0 --format=csv,noheader --query-gpu=pci.device_id,pci.sub_device_id)"
smi --help-query-gpu | tr -d ' ' >fields
check "there are many fields" test "$(wc -l <fields)" -ge 20
check "each of them can be asked for" smi --query-gpu="$(paste -sd, fields)" --format=csv
smi -q >all
check_eq "-q has each GPU" 4 "$(grep -c '^GPU ' all)"
check "and its memory" grep -qx '    Memory Total *: 256 MiB' all
check "and its aperture" grep -qx '    BAR1 Total *: 64 MiB' all
process_lines() { # the processes of -q
	sed -n '/^    Processes/,$p' "$1" | tr -s ' '
}
smi -q -i 0 >one
check_eq "and its processes" " Processes
 Process ID : $own
 Type : C
 Name : $OUT/a?name
 Used GPU Memory : 8 MiB
 Process ID : 4194304
 Type : C
 Name : [N/A]
 Used GPU Memory : 1 MiB" "$(process_lines one)"
smi -q -i 1 >one
check_eq "none" " Processes : None" "$(process_lines one)"
smi -q -i 3 >one
check_eq "not known" " Processes : [N/A]" "$(process_lines one)"
smi >table
check_eq "the table has them, too" "GPU PID Used Process
0 $own 8 MiB $OUT/a?name
0 4194304 1 MiB [N/A]
2 [N/A]
3 [N/A]" "$(sed -n '/PID/,$p' table | tr -s ' ')"
for command in '' -q 'topo -m' --version --help; do
	# shellcheck disable=SC2086 # words
	smi $command >said
	check "it says whose it is: $command" grep -q Peerlane said
done

# The relations are those of peerlane topo on the same machine
cells() { # FILE: "A B RELATION" of a matrix of nvidia-smi
	awk -F '\t' 'NR == 1 { for (i = 2; i <= NF; i++) if ($i !~ /Affinity/) col[i] = $i; next }
		/^$/ { exit }
		{ for (i in col) print $1, col[i], $i }' "$1" | sort
}
for machine in switches bridges; do
	smi topo -m >"$machine.smi"
	"$tool" topo --from "$machine.rec" --json | jq -r '
		(.pairs[] | "\(.a) \(.b) \(.relation)", "\(.b) \(.a) \(.relation)"),
		(.devices[] | "\(.label) \(.label) X")' | sort >"$machine.ours"
	cells "$machine.smi" >"$machine.cells"
	check "$machine: the matrix is that of peerlane topo" diff "$machine.ours" "$machine.cells"
done
check_eq "switches: all relations of the description" "PIX PXB SYS X" "$(cut -d' ' -f3 switches.cells | sort -u | xargs)"
check_eq "bridges: likewise" "NODE PHB SYS X" "$(cut -d' ' -f3 bridges.cells | sort -u | xargs)"
check_eq "the NIC is in it, with four GPUs and itself" 9 "$(grep -c NIC0 switches.cells)"
machine=switches
check_eq "processors and NUMA nodes" "0-3 0
0-3 0
0-3 N/A
4,64-65 1" "$(awk -F '\t' '/^GPU/ { print $(NF - 1), $NF }' switches.smi)"

status() { # COMMAND…: its exit status
	status_got=0
	"$@" >said 2>&1 || status_got=$?
	echo "$status_got"
}
check_fails "no such GPU" 'there is no GPU "4"' smi -L -i 4
check_eq "... is status 6" 6 "$(status smi -L -i 4)"
check_eq "an address of no GPU, too" 6 "$(status smi -L -i 0000:07:01.0)"
check_eq "and no number at all" 6 "$(status smi -L -i x)"
check_fails "no such field" 'there is no field "nonsense"' smi --query-gpu=index,nonsense --format=csv
check_fails "no format" 'needs --format=csv' smi --query-gpu=index
check_fails "another format" 'needs --format=csv' smi --query-gpu=index --format=csv,xml
check_fails "a format alone" 'goes with --query-gpu' smi --format=csv
check_fails "two commands" 'one command at a time' smi -L -q
check_fails "topo alone" 'topo goes with -m' smi topo
check_fails "a matrix of what?" 'topo goes with -m' smi -m
check_fails "no such command" 'no command "nvlink"' smi nvlink
check_eq "wrong usage is status 2" 2 "$(status smi --nonsense)"
gpus=0
check_fails "no GPU" 'the driver is loaded and has none' smi
machine=no-driver
check_fails "no driver" 'modprobe peerlane_gpu' smi
check_eq "... is status 9" 9 "$(status smi)"
check_eq "help works without" 0 "$(status smi --help)"
check_eq "a full disk is no success" 255 "$(gpus=4 machine=switches; smi -L 2>said >/dev/full; echo $?)"
finish
