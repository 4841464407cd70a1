# SPDX-License-Identifier: MIT
# What to do about a transfer that was not direct, by the reason that the library gave; "" where nothing is to be done.
def cure:
	(.reason // "") as $why
	| if $why == "" then ""
	  elif $why | test("PLN_MR_ONLY_") then "nothing: the program asked for this way"
	  elif $why | test("no P2PDMA in this kernel") then "boot a kernel with CONFIG_PCI_P2PDMA, and load the GPU's driver on it"
	  elif $why | test("the kernel refuses DMA between|cannot be used for peer-to-peer DMA") then
		"put drive and GPU below one switch without ACS redirect: peerlane doctor names the ports"
	  elif $why | test("cannot take dma-bufs") then "use an RDMA device whose driver takes dma-bufs"
	  else "ask peerlane doctor on that machine" end;
