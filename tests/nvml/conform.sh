#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: libnvidia-ml answers as NVIDIA's does on a real GPU, question by question
# tags: nvml
# tier: check
# timeout: 60
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/nvml/lib.sh"

build_userlib nvml tests
host=$BUILD/userlib/tests/host
golden=$TOP/userlib/nvml/test/conform.golden
processes="" records
LD_LIBRARY_PATH=$host/fake PEERLANE_FAKE_GPUS=1 PEERLANE_FAKE_MACHINE=$OUT/switches.rec "$host/nvml_conform" >answers
check "all questions were asked" test "$(wc -l <answers)" -ge 200
check "every answer is that of a real driver" diff -u "$golden" answers
sed 's/^shutdown  .*/shutdown 0/' answers >wrong
check_false "a wrong answer would be seen" cmp "$golden" wrong
finish
