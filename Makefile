# SPDX-License-Identifier: MIT
#
# Peerlane. On the host this only makes the build root (images/) and enters it; everything is built and run in there.

# make takes neither a blank nor a colon in the name of a file
ifneq ($(words $(CURDIR) $(PEERLANE_CACHE))$(findstring :,$(CURDIR)$(PEERLANE_CACHE)),$(words . $(if $(PEERLANE_CACHE),.)))
$(error peerlane: neither the path of this checkout nor PEERLANE_CACHE may have a blank or a colon in it: $(CURDIR) $(PEERLANE_CACHE))
endif

TOP := $(CURDIR)
BUILD := $(TOP)/build
include versions.mk
comma := ,
# Those that are built here; once one of them is there, it is kept up to date like the others
BUILT := $(subst $(comma), ,$(BUILT_KERNELS))
# Their goals: debug-kernel is the first one that is named so; one after it has its full name, 6.12-debug-kernel
built_of = $(firstword $(filter $(1) %-$(1),$(BUILT)))
BUILT_NAMES := $(foreach k,$(BUILT),$(or $(foreach n,$(lastword $(subst -, ,$(k))),$(if $(filter $(k),$(call built_of,$(n))),$(n))),$(k)))
BUILT_THERE := $(foreach k,$(BUILT),$(if $(wildcard $(BUILD)/guest/$(k)/headers),$(k)))
# So is a guest with the oldest kernel
OLDEST_THERE := $(if $(wildcard $(BUILD)/guest/$(KERNEL_MIN)/release),$(KERNEL_MIN))
GUESTS := $(subst $(comma), ,$(GUEST_KERNELS)) $(BUILT_THERE) $(OLDEST_THERE)
KVERS := $(subst $(comma), ,$(HEADER_KERNELS)) $(BUILT_THERE)
prefix ?= /usr/local
DESTDIR ?=
V ?= 0
export V

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

IN_ROOT_GOALS := all bundle image bundle-arm64 image-arm64 qemu-arm64 demo check check-all check-nightly bench matrix report qemu qemu-asan qemu-tsan wire kernel userlib guest debug-guest kcsan-guest p2pdma-guest 6.12-debug-guest oldest-guest $(addprefix kernel-,$(KVERS)) $(addprefix guest-,$(GUESTS))
HOST_GOALS := root third-party lands arm64-parts packages debug-kernel kcsan-kernel p2pdma-kernel 6.12-debug-kernel oldest-kernel docs check-gpu bench-gpu install uninstall dist clean clean-cache help
.PHONY: $(IN_ROOT_GOALS) $(HOST_GOALS) docs-generator

ifneq ($(PEERLANE_IN_ROOT),1)

.NOTPARALLEL:

# Some cases run commands where the user does
check check-all check-nightly bench: export PEERLANE_KEEP_HOST = 1

# What `make check` does without
check-all: debug-kernel qemu-asan
# Cases that are picked skip what they need of others and the cache lacks
check-nightly: $(if $(TESTS),,third-party) $(BUILT_NAMES:%=%-kernel) oldest-kernel qemu-asan qemu-tsan qemu-arm64 lands docs-generator
bench: $(if $(filter all nightly,$(TIER)),debug-kernel qemu-asan) $(if $(filter nightly,$(TIER)),third-party $(BUILT_NAMES:%=%-kernel) oldest-kernel qemu-tsan qemu-arm64 lands docs-generator)

qemu-arm64 bundle-arm64 image-arm64: arm64-parts

$(IN_ROOT_GOALS): root
	+@images/build/in-root images/build/make-in-root $@

else

JOBS := $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(shell nproc))

all: qemu wire kernel userlib guest ## Build everything: QEMU, the wire, kernel modules, user library, guest images

qemu: ## Build QEMU with hw-model/ in it
	@images/build/build-qemu

qemu-asan: ## Build QEMU with the address and undefined behaviour sanitizers, for the tests without a guest
	@images/build/build-qemu asan

qemu-tsan: ## Build QEMU with the thread sanitizer, for tests/qtest/races
	@images/build/build-qemu tsan

qemu-arm64: ## Build QEMU for arm64 hosts
	@images/build/build-qemu arm64

wire: ## Build the wire between emulated hosts
	@mkdir -p build/wire
	+@images/build/quiet "WIRE" build/wire.log $(MAKE) -C hw-model/wire O=$(BUILD)/wire

kernel: $(addprefix kernel-,$(KVERS)) ## Build the kernel modules for every supported kernel

$(addprefix kernel-,$(KVERS)): kernel-%:
	@mkdir -p build/kernel/$*
	+@images/build/quiet "MODULES $*" build/kernel/$*.log \
		$(MAKE) -C kernel KVER=$* KDIR=$(if $(filter $(BUILT),$*),$(BUILD)/guest/$*/headers,/usr/src/linux-$*) O=$(BUILD)/kernel/$* modules test-modules test-programs

userlib: ## Build the user library and its tools
	@mkdir -p build/userlib
	+@images/build/quiet "USERLIB" build/userlib.log $(MAKE) -C userlib O=$(BUILD)/userlib WERROR=1

guest: $(addprefix guest-,$(GUESTS)) ## Build the guest images, one for each guest kernel

$(addprefix guest-,$(GUESTS)): guest-%: kernel-% userlib
	@images/guest/build-base $*
	@images/guest/build-perftest $*
	@images/guest/build-overlay $*

# Not in one go: what it builds decides what the goals are
$(BUILT_NAMES:%=%-guest): %-guest:
	@images/guest/build-kernel $(call built_of,$*)
	+@$(MAKE) guest-$(call built_of,$*)

# Before the first one there is no such goal
oldest-guest: kernel-$(KERNEL_MIN) userlib
	@images/guest/build-base $(KERNEL_MIN)
	+@$(MAKE) guest-$(KERNEL_MIN)

demo: all ## Boot the emulated machine, run the main scenarios, show the results (build/report.html)
	@scenarios/demo

# Before the cases: none of them is to wait, within its own limit, for what another one builds
check check-all: $(if $(TESTS),,userlib-tests)
check-nightly: $(if $(TESTS),,userlib-nightly-tests)
bench: $(if $(filter none,$(TIER)),,userlib-$(if $(filter nightly,$(TIER)),nightly-)tests)

.PHONY: userlib-tests userlib-nightly-tests
userlib-tests userlib-nightly-tests: userlib-%: userlib
	+@images/build/quiet "USERLIB TESTS" build/userlib-$*.log $(MAKE) -C userlib O=$(BUILD)/userlib WERROR=1 $*

check: all ## Run the quicker tests; the last line says N passed, N failed, N skipped
	@tests/run $(if $(TESTS),,--tier check) $(if $(JSON),--json $(JSON)) $(TESTS)

check-all: all ## Run the tests that CI runs, including those of the debug kernel
	@tests/run --tier all $(if $(JSON),--json $(JSON)) $(TESTS)

check-nightly: all ## Run all tests with more data, longer races and full boots, and the slowest ones
	@tests/run --tier nightly $(if $(JSON),--json $(JSON)) $(TESTS)

matrix: all ## Run every scenario on every topology; fail if a path is not the expected one (ARGS='...')
	@scenarios/matrix $(if $(JSON),--json $(JSON)) $(ARGS)

bench: all ## Time the build, the boot and the tests (TIER=check, all, nightly, none): build/bench/COMMIT.json
	@images/build/bench

bundle: all ## Pack everything that runs scenarios and programs without a build: build/peerlane-VERSION-x86_64.tar.zst
	@images/bundle/make-bundle

image: all ## The same as a container image: build/peerlane-VERSION-x86_64.oci.tar, for docker load or podman load
	@images/bundle/make-image

# Guests are of x86-64 there, too
bundle-arm64: qemu-arm64 userlib guest ## The same bundle for arm64 hosts: build/peerlane-VERSION-arm64.tar.zst
	@images/bundle/make-bundle --arm64

image-arm64: qemu-arm64 userlib guest ## The same image for arm64 hosts
	@images/bundle/make-image --arm64

report: ## Make build/report.html again from the last results
	@scenarios/report build/report.html build/out/demo/*/result.json

endif

root: ## Make the Debian build root, once (in the cache)
	@images/build/build-root

third-party: root ## Fetch third-party modules and programs (nvidia-peermem, fio, ...) into the cache, for the tests that run them
	@images/build/third-party

lands: root ## Make roots of other Debian releases, in which packages and bundles are tested, once (in the cache)
	@images/build/lands

arm64-parts: root ## Fetch compilers and libraries for arm64 hosts into the cache
	@images/build/fetch-arm64

packages: root ## Build the Debian packages: build/packages/*.deb
	@images/packages/make-packages

debug-kernel: root ## Build Linux with KASAN, lockdep and the like, once (ten minutes), for the cases tagged debug
kcsan-kernel: root ## Build Linux with KCSAN and lockdep, once (ten minutes), for the cases tagged kcsan
p2pdma-kernel: root ## Build Linux 6.12 with P2PDMA, which Debian's lacks, once (five minutes), for the cases that boot it
6.12-debug-kernel: root ## Build Linux 6.12 with KASAN and lockdep, once (ten minutes), for nvidia-fs, which knows no later one
$(BUILT_NAMES:%=%-kernel): %-kernel:
	@images/build/fetch-kernel-source $(call built_of,$*)
	+@images/build/in-root images/build/make-in-root $*-guest

oldest-kernel: root ## Build a guest with the oldest kernel that the modules support, for the cases that boot it
	@images/build/fetch-oldest-kernel
	+@images/build/in-root images/build/make-in-root oldest-guest

docs-generator: root
	@images/build/fetch-docs

docs: docs-generator ## Make a site of all documents, with search, readable without a network: build/docs/index.html
	+@images/build/in-root images/build/make-in-root userlib
	@images/build/build-docs

check-gpu: ## On a machine with a real NVIDIA GPU: move files into its memory with our libcufile
	+@$(MAKE) -C userlib check-gpu O=$(BUILD)/userlib-host

bench-gpu: ## On such a machine: compare reads and writes of our libcufile with NVIDIA's (ARGS='...': see tests/gpu/bench-gpu)
	+@$(MAKE) -C userlib bench-gpu O=$(BUILD)/userlib-host

install: ## Install the user library, headers and manual pages below DESTDIR/prefix
	+@prefix=$(prefix) images/build/install "$(DESTDIR)"

uninstall: ## Remove the files of make install below DESTDIR/prefix
	+@prefix=$(prefix) images/build/install --remove "$(DESTDIR)"

dist: ## Make build/peerlane-VERSION.tar.gz from the last commit
	@images/build/dist

clean: ## Remove build/ (the cache stays)
	@rm -rf build

clean-cache: ## Show the content of the cache; UNUSED=1 removes what this checkout does not use, ALL=1 everything
	@images/build/clean-cache $(if $(ALL),--all,$(if $(UNUSED),--unused))

.DEFAULT:
	@echo "peerlane: there is no goal $@; make help lists them" >&2; exit 2

help: ## This text
	@echo "Goals:"
	@sed -n 's/^\([a-z0-9.-]*\):.*## \(.*\)/  \1|\2/p' Makefile | awk -F'|' '{ printf "%-17s %s\n", $$1, $$2 }'
	@echo "Variables: V=1 shows every command; DEBIAN_MIRROR, PEERLANE_CACHE ($${PEERLANE_CACHE:-$${XDG_CACHE_HOME:-~/.cache}/peerlane}),"
	@echo "PEERLANE_ACCEL=kvm|tcg, PEERLANE_MODE=root|unshare|sudo, JSON=FILE for check... and matrix, TESTS='...' for check..., DESTDIR and prefix for install and uninstall."
