# SPDX-License-Identifier: MIT
# What to do about a transfer that was not direct, by the reason that the library gave; "" where nothing is to be done.
# The first line that fits; what the library found out comes before the words for an error of the kernel. peerlane doctor
# has the same cures, with their cost.
def cure:
	(.reason // "") as $why
	| def on(words): $why | test(words);
	if $why == "" then ""
	elif on("PLN_MR_ONLY_") then "nothing: the program asked for this way"
	elif on("no P2PDMA in this kernel") then "boot a kernel with CONFIG_PCI_P2PDMA, and load the GPU's driver on it"
	elif on("dm-crypt \\(") then "use a self-encrypting drive or an unencrypted partition for this data"
	elif on("\\bmd \\(") then "use level 0, 1 or 10 of NVMe drives on Linux 7.2 or newer, or one file system on each drive"
	elif on("the device mapper \\(") then "put the file system on a partition of the drive; for several drives use md level 0 on Linux 7.2 or newer"
	elif on("\\bloop[0-9]+ is between") then "mount the drive itself, not an image in a file"
	elif on("storage driver does not do peer-to-peer DMA") then "move the file to an NVMe drive: no other storage driver does peer-to-peer DMA"
	elif on("the file system takes no memory of devices") then "copy the file to a local NVMe drive"
	elif on("O_DIRECT|does no direct IO|known to do direct IO|keeps its data in host memory") then
		"keep the file on ext4 or xfs on an NVMe drive, without encryption, compression, inline data or data=journal"
	elif on("BAR1 is full|no static BAR1") then
		"give the GPU a larger BAR1 (Above 4G decoding and Resizable BAR in the firmware), or deregister buffers that are not in use"
	elif on("^([0-9]+ failed: )?unaligned\\b") and (on("refused before") | not) then
		"begin and end transfers at whole blocks, in the file and in GPU memory: multiples of 4096 bytes"
	elif on("the kernel refuses DMA between|cannot be used for peer-to-peer DMA") then
		"put drive and GPU below one switch without ACS redirect: peerlane doctor names the ports"
	elif on("cannot take dma-bufs") then "use an RDMA device whose driver takes dma-bufs"
	else "ask peerlane doctor on that machine" end;
