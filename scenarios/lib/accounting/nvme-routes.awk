# SPDX-License-Identifier: MIT
#
# Of a trace of QEMU's NVMe model: how many bytes its commands moved to and from
# where.  A line for each place: NAME, bytes of data read, written, and of metadata
# read, written.
#
#	awk -v ranges='BASE:SIZE:NAME ...' -v blocks='FIRST:COUNT ...' -f nvme-routes.awk
#
# ranges are guest-physical (a GPU's BAR1); what lies in none is "host".  blocks are
# 512-byte blocks of the drive that hold the file's data; commands elsewhere
# are "metadata".  Without blocks everything is data.  "read" is a read of the
# drive, so a write to memory.
#
# The model traces a command before it maps the command's addresses, and does
# both in one go, so an address belongs to the last command above it.

function hex(text, n, i) {
	n = 0
	text = tolower(text)
	sub(/^0x/, "", text)
	for (i = 1; i <= length(text); i++)
		n = n * 16 + index("0123456789abcdef", substr(text, i, 1)) - 1
	return n
}

function word_after(key, i) {
	for (i = 1; i < NF; i++)
		if ($i == key)
			return $(i + 1)
	return ""
}

function command(which, lba, i) {
	dir = which
	class = nblocks ? "metadata" : "data"
	lba = hex(word_after("lba"))
	for (i = 1; i <= nblocks; i++)
		if (lba >= first[i] && lba < past[i])
			class = "data"
}

BEGIN {
	nranges = split(ranges, range, " ")
	for (i = 1; i <= nranges; i++) {
		split(range[i], part, ":")
		base[i] = part[1] + 0
		end[i] = base[i] + part[2]
		name[i] = part[3]
	}
	name[nranges + 1] = "host"
	nblocks = split(blocks, block, " ")
	for (i = 1; i <= nblocks; i++) {
		split(block[i], part, ":")
		first[i] = part[1] + 0
		past[i] = first[i] + part[2]
	}
}

/pci_nvme_admin_cmd / { dir = "" }
/pci_nvme_io_cmd / { dir = "" }
/pci_nvme_read / { command("read") }
/pci_nvme_write / { command("write") }

/pci_nvme_map_addr / {
	if (dir == "")
		next
	addr = hex(word_after("addr"))
	where = "host"
	for (i = 1; i <= nranges; i++)
		if (addr >= base[i] && addr < end[i])
			where = name[i]
	sum[where, class, dir] += word_after("len")
}

END {
	for (i = 1; i <= nranges + 1; i++)
		printf "%s %.0f %.0f %.0f %.0f\n", name[i], \
			sum[name[i], "data", "read"], sum[name[i], "data", "write"], \
			sum[name[i], "metadata", "read"], sum[name[i], "metadata", "write"]
}
