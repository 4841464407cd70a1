#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: behind an IOMMU that translates: right data or an error, whatever the kernel chose
# tags: scenario guest p2p switch iommu
# timeout: 400
exec "$TOP/scenarios/run" --out "$OUT" --json "$OUT/result.json" iommu-translated
