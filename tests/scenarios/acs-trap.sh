#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: ACS redirect makes peers slow, doctor names the cure, and it cures
# tags: scenario guest p2p switch doctor
# timeout: 400
exec "$TOP/scenarios/run" --out "$OUT" --json "$OUT/result.json" acs-trap
