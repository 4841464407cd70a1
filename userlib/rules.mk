# SPDX-License-Identifier: MIT
#
# What the Makefiles of all parts share: the folders, the compiler's warnings,
# and commands that are shown in short, or with V=1 in full.

# make takes no blank in the name of a file
ifneq ($(words $(CURDIR)),1)
$(error peerlane: the path of this checkout may have no blank in it: $(CURDIR))
endif
TOP	:= $(abspath $(dir $(lastword $(MAKEFILE_LIST)))/..)
# What ccache makes relative: sources.  It names targets in what -MMD writes by its
# relative names, too, and make does not know those of objects.
export CCACHE_BASEDIR := $(TOP)/userlib
O	?= $(TOP)/build/userlib
override O := $(abspath $(O))
T	:= $(O)/tests
# Test programs that are not for a guest
H	:= $(T)/host

# What is built depends on these
MK	:= $(MAKEFILE_LIST)

# WERROR=1 makes warnings errors, as the build root does: its compiler is known.
# Others, older or newer ones, warn of other things.
WERROR	?=
WARN	:= -Wall -Wextra $(if $(WERROR),-Werror) -Wmissing-prototypes \
	   -Wstrict-prototypes -Wshadow -Wvla -Wpointer-arith -Wwrite-strings
SAN	:= -fsanitize=address,undefined -fno-sanitize-recover=undefined \
	   -fno-omit-frame-pointer

V ?= 0
ifeq ($(V),0)
Q := @
# stands before its command, on the same line
say = @printf '  %-7s %s\n' $(1) $(patsubst $(O)/%,%,$(2));
else
Q :=
say =
endif

# One may set it, for another compiler or machine: it comes last
CFLAGS	?= -O2 -g

# Of all C sources
STD	:= -std=gnu11 -D_GNU_SOURCE -ffile-prefix-map=$(TOP)/= -fstack-protector-strong \
	   -include $(TOP)/userlib/fortify.h -include $(TOP)/userlib/old_libc.h
# Of all programs and libraries
HARD	:= -Wl,-z,relro,-z,now

.DELETE_ON_ERROR:
