#!/bin/sh
# SPDX-License-Identifier: MIT
# desc: NVIDIA's gdsio, gdsio_verify and gdscp run unmodified, the drive and the GPU's memory exchange the data, which is right
# tags: programs guest cuda cufile p2p third-party
# tier: nightly
# timeout: 900
. "$TOP/tests/programs/lib.sh"

program_source gds-tools gdsio
numa=$(cc -print-file-name=libnuma.so.1)
need_file "$BUILD/userlib/tests/host/io_faults.so" "$numa"

mkdir case case/lib case/gds
cp "$source/gdsio" "$source/gdsio_verify" "$source/gdscp" "$numa" case/gds/
chmod +x case/gds/gdsio case/gds/gdsio_verify case/gds/gdscp
cp "$BUILD/userlib/tests/host/io_faults.so" case/
cp "$TOP/scenarios/lib/guest/guest.sh" case/lib/
cp "$TOP/tests/programs/guest/gds-tools" case/run
printf 'peerlane_gpu\nnvme\n' >case/modules
echo cxx >case/extras
truncate -s 256M "$OUT/disk0"
vm_image disk0 "$OUT/disk0"
vm_run guest same-switch 7.2 "$PWD/case" 600
status=$?
ktap_from guest/result.log
check_eq "the guest ended well" 0 "$status"
finish
