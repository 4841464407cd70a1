#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: libnvidia-ml on a fake driver and records of machines: meaning of every call, every error
# tags: nvml
# tier: check
# timeout: 300
. "$TOP/scenarios/lib/case.sh"
. "$TOP/tests/nvml/lib.sh"

build_userlib nvml tests
records
for variant in '' _san _tsan; do
	unit "nvml_unit$variant" "$OUT/switches.rec" "$OUT/bridges.rec" "$OUT/no-driver.rec"
done
finish
