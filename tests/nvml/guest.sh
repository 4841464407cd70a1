#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: libnvidia-ml and nvidia-smi in a guest with two GPUs: they agree with libcuda and with peerlane topo
# tags: guest nvml
# tier: check
# timeout: 240
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/cuda/lib.sh"
need_file "$BUILD/userlib/tests/nvml_guest" "$BUILD/userlib/bin/nvidia-smi"

boot plain "$TOP/tests/cuda/two-gpus.topo,gpu1.coherent=on" 7.2 150 "$TOP/tests/nvml/guest/nvml"
sed -n 's/^# smi: //p' plain/result.log >said
check_eq "nvidia-smi -L has two GPUs" 2 "$(grep -cE '^GPU [01]: Peerlane emulated GPU \(UUID: GPU-[0-9a-f-]{36}\)$' said)"
# two root ports of one root bus
check_eq "its table has the two processes with memory" 2 "$(grep -cE '^0 +[0-9]+ +[0-9]+ MiB  /usr/lib/peerlane/tests/nvml_guest$' said)"
check_eq "its matrix" PHB "$(awk -F '\t' '$1 == "GPU0" { print $3 }' said)"
check_eq "is that of peerlane topo" PHB "$(awk '!/\t/ && $1 == "GPU0" && $2 == "X" { print $3 }' said)"
check_eq "256 MiB, as the topology says" "1, 256 MiB" "$(grep '^1, ' said)"
check_eq "without the driver: status 9" "without the driver 9" "$(grep '^without' said)"
finish
