#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: random registers, descriptors and windows do not bring QEMU down
# tags: qtest
# tier: check
# timeout: 60
# shellcheck disable=SC2086,SC2154  # numbers; variables of lib.sh
. "$(dirname "$0")/lib.sh"

# SEEDS and STEPS may be given; a failure is repeated with the seed it printed
SEEDS=${SEEDS:-1 2 3}
STEPS=${STEPS:-3000}

# Each step is one line for qtest.  Half of what it makes is nearly right.
make_steps() { # SEED STEPS
    awk -v x=$(($1 * 7919 + 1)) -v steps="$2" '
    function rnd(n) { x = (x * 16807) % 2147483647; return x % n }
    function pick(list,   a, n) { n = split(list, a, " "); return a[1 + rnd(n)] }
    function wide() { return sprintf("0x%08x%08x", rnd(2147483646) * 2, rnd(2147483646) * 2) }
    function vram() {
        return pick("0 1 4 64 0x1000 0xffff 0x10000 0x80000 0xfffff8 0xffffff 0x1000000 0x1000001 0xfffffffffffffff8 0xffffffffffffffff " wide())
    }
    function bus() {
        return pick("0 0x1000 0x8000 0x10000 0x11040 0x100000 0x100001 0x3ffffff 0x4000000 0xfee00000 0xfec00000 " \
            "0xe0000000 0xe0001018 0xe0008000 0xe0100000 0xe0101018 0x800000000 0x800010000 0x8000fffff 0x900000000 " \
            "0x1000000000 0x1000ffffff 0x600000000 0xfffffffffffffff0 0xffffffffffffffff " wide())
    }
    function addr(is_bus) { return is_bus ? bus() : vram() }
    function len() { return pick("0 1 4 8 16 63 64 4096 65536 262144 262148 1048576 0x1000000 0x100000000 0x100000001 0xffffffffffffffff " wide()) }
    function q() { return rnd(4) }
    function regs(gpu) { return 3758096384 + gpu * 1048576 }
    function w(a, v) { printf "writel %d %s\n", a, v; made++ }
    function wq(a, v) { printf "writeq %d %s\n", a, v; made++ }
    # A descriptor that is right, but perhaps for one field
    function right(a,   op, f, arg, n, dst) {
        op = rnd(9); f = 4 + 8 * rnd(2)
        if (op == 1 || op == 4 || op == 5) f += rnd(4)
        else if (op == 3 || op == 7) f += rnd(2)
        else if (op) f += 2 * rnd(2)
        arg = op == 2 || op == 8 ? 4 : op == 5 ? 1 + rnd(2) : op == 7 ? rnd(2000) : 0
        n = op == 0 || op > 5 ? 0 : pick("4 64 4096 262144 262148 1048576")
        w(a, op); w(a + 4, f); w(a + 8, arg); w(a + 12, 0)
        wq(a + 16, op == 1 || op == 3 || op == 4 || op == 5 || op == 7 ? (f % 2 ? pick("0x100000 0x800000000 0x1000000000 0x900000000") : 8 * rnd(1000000)) : 0)
        wq(a + 24, op && op != 3 && op != 7 ? (int(f / 2) % 2 ? pick("0x200000 0x800000000 0x1000800000 0x900000000") : 8 * rnd(1000000)) : 0)
        wq(a + 32, n); wq(a + 40, op == 2 || op == 3 || op >= 6 ? rnd(100) : 0)
        wq(a + 48, 32768 + 32 * rnd(64)); wq(a + 56, rnd(1000))
        if (!rnd(6)) wq(a + 8 * rnd(8), rnd(2) ? wide() : rnd(100))
    }
    function descriptor(a,   f) {
        f = rnd(16)
        w(a, rnd(12)); w(a + 4, rnd(20) ? f : wide())
        w(a + 8, pick("0 0 1 2 4 8 1000 10000000 10000001 0xffffffff")); w(a + 12, rnd(20) ? 0 : 1)
        wq(a + 16, rnd(3) ? addr(f % 2) : 0); wq(a + 24, rnd(3) ? addr(int(f / 2) % 2) : 0)
        wq(a + 32, len()); wq(a + 40, rnd(2) ? 0 : wide())
        wq(a + 48, rnd(4) ? 32768 + 32 * rnd(64) : bus()); wq(a + 56, rnd(1000))
    }
    function ringup(   a) {
        a = regs(rnd(2)) + 4096 + 256 * q()
        w(a, 2); wq(a + 8, rnd(8) ? 65536 + 4096 * q() : bus()); w(a + 16, pick("16 16 16 16 2 3 0 4096 0xffffffff")); w(a, 1)
    }
    BEGIN {
        while (made < steps) {
            k = rnd(100)
            if (k < 35) {
                gpu = rnd(2); g = regs(gpu); i = q(); n = 1 + rnd(6)
                for (j = 0; j < n; j++) {
                    if (rnd(4)) right(65536 + 4096 * i + 64 * j)
                    else descriptor(65536 + 4096 * i + 64 * j)
                }
                g = g + 4096 + 256 * i
                w(g, 2); wq(g + 8, 65536 + 4096 * i); w(g + 16, 16); w(g, 1); w(g + 24, n)
                # The engine has done it before the next step
                print "engine-idle gpu" gpu
            }
            else if (k < 50) w(regs(rnd(2)) + 4096 + 256 * q() + 24, pick("0 1 2 3 5 8 15 16 0xffffffff"))
            else if (k < 62) ringup()
            else if (k < 72) {
                g = regs(rnd(2))
                w(g + 256, pick("0 1 2 5 14 15 16 0xffffffff")); w(g + 260, pick("0 1 1 1 2 16 17 0xffffffff"))
                wq(g + 264, pick("0 0x10000 0x20000 0xff0000 0x1000000 0x8000 0xffffffffffff0000")); w(g + 272, rnd(5))
            }
            else if (k < 80) w(regs(rnd(2)) + 4 * rnd(8192), rnd(3) ? rnd(64) : wide())
            else if (k < 86) { printf "readl %d\n", regs(rnd(2)) + 4 * rnd(16384); made++ }
            else if (k < 92) { printf "memset %s %d 0x5a\n", pick("0x800000000 0x80000fff0 0x900000000 0x1000000000 0x1000fffff0"), 1 + rnd(64); made++ }
            else if (k < 94) { printf "clock_step %d\n", 1 + rnd(20000000); made++ }
            else if (k < 95) w(regs(rnd(2)) + 68, "0x52535421")
            else { printf "read %s %d\n", pick("0x800000000 0x80000fff0 0x1000000000 0x1000fffff0"), 1 + rnd(64); made++ }
        }
    }'
}

for seed in $SEEDS; do
    echo "# seed $seed"
    qt_start -device peerlane-gpu,id=gpu0,addr=4,vram-size=16M,bar1-size=1M,coherent=on \
        -device peerlane-gpu,id=gpu1,addr=5,vram-size=16M,bar1-size=1M,bar1-runs=3
    gpu_setup 0 0x20
    gpu_setup 1 0x28
    use 0
    msix_setup 0 0x20
    make_steps "$seed" "$STEPS" >"$OUT/steps"
    n=$(wc -l <"$OUT/steps")
    qt_feed <"$OUT/steps" >"$OUT/answers"
    check_eq "seed $seed: each step has its answer" "$n" "$(grep -c '^OK' "$OUT/answers")"
    # Whatever has happened: after a reset it works
    cfg_writew 0x20 4 6
    setreg $PLN_REG_RESET $PLN_RESET_MAGIC
    queue_setup 0
    wrhex $((WIN + 0x700000)) 0x313233343536373839
    job 0 op=$PLN_OP_CRC32C src=0x700000 len=9
    job_is "seed $seed: after $n steps the GPU works" 0 $((0xe3069283)) 9
    counter $PLN_CNT_DESCRIPTORS
    check "seed $seed: $r descriptors were run" test "$r" -gt 50
    qt_stop
done
qt_finish
