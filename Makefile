# SPDX-License-Identifier: GPL-2.0
#
# The commands of this tree; `make help` lists them. kbuild reads the file
# Kbuild beside this one, never this one.
#
# Modules are built inside the build root (tools/vm/enter), where compilers and
# kernel tree fit each other, unless KDIR names a kernel tree of this host.
# Inside the root KDIR is set, so the same rules do the work there.

MODULES ?= $(CURDIR)/build/modules
DESTDIR ?=
prefix ?= /usr
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/rdmavt-rs
ENTER := tools/vm/enter --

# Passed on to kbuild when given: make V=1, make CLIPPY=1, make W=1 ...
KBUILD_VARS := $(foreach v,V W LLVM CLIPPY KCFLAGS KRUSTFLAGS,$(if $($(v)),$(v)='$($(v))'))
JOBS := $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))

.DEFAULT_GOAL := all
.PHONY: all modules modules_debug modules_install install clean distclean cacheclean check \
	check-host check-vm check-debug check-long check-psm3 fmt fmtcheck clippy rustdoc demo bench shell setup help

## Build
all: modules ## build all modules into build/modules (the default)

ifeq ($(KDIR),)
modules modules_rustdoc: setup
	@$(ENTER) make --no-print-directory $@ MODULES='$(MODULES)' $(KBUILD_VARS)
else
KBUILD := $(MAKE) -C '$(KDIR)' M='$(CURDIR)' MO='$(MODULES)' \
	$(if $(KCC),CC='$(KCC)') $(KBUILD_VARS) $(JOBS)
modules: ## same; KDIR=DIR builds on this host against the kernel tree DIR
	@tools/check/probe '$(KDIR)'
	@mkdir -p '$(MODULES)'
	$(KBUILD) modules

modules_rustdoc:
	@tools/check/probe '$(KDIR)'
	@mkdir -p '$(MODULES)'
	$(KBUILD) RUSTDOC_CRATES=1 modules
endif

modules_debug: setup ## the same against the debug kernel, into build/modules-debug
	@tools/vm/enter --kernel debug -- make --no-print-directory modules \
		MODULES='$(CURDIR)/build/modules-debug' $(KBUILD_VARS)

## Install (as root, or into DESTDIR)
modules_install: ## install the modules that are in build/modules, for the kernel they were built for
	@tools/install modules '$(MODULES)' '$(DESTDIR)'

install: modules_install ## the same, with the udev rule for /dev/rv and the ABI header
	install -D -m 644 tools/udev/60-rv.rules '$(DESTDIR)/usr/lib/udev/rules.d/60-rv.rules'
	install -D -m 644 include/uapi/rdma/rv_user_ioctls.h \
		'$(DESTDIR)$(prefix)/include/rdma/rv_user_ioctls.h'

## Test
check: setup ## everything that must pass; SUITE='NAME...' runs some, tools/check/run --list lists them
	@tools/check/run $(SUITE)

check-host: setup ## the part of check that boots no VM
	@tools/check/run --group host

check-vm: setup ## the part of check that boots VMs, with the builds it needs
	@tools/check/run --group vm

check-debug: setup ## the selftests and a short PSM3 on a kernel built to catch errors
	@tools/check/run --group debug

check-psm3: setup ## the part of check that runs PSM3 (libfabric) over /dev/rv
	@tools/check/run psm3-control psm3-kernel psm3-user psm3-user-eager

check-long: setup ## what check leaves out because it takes long
	@tools/check/run --group long

fmt: setup ## format all Rust code
	@$(ENTER) tools/check/rustfmt

fmtcheck: setup ## say which Rust code is not formatted
	@$(ENTER) tools/check/rustfmt --check

clippy: setup ## clippy with warnings as errors, tools and modules
	@tools/check/run clippy modules-clippy

rustdoc: setup ## documentation of all crates with warnings as errors
	@tools/check/run rustdoc modules-rustdoc

## Use
demo: setup ## move a real file between two VMs through /dev/rv
	@tools/demo/run

bench: setup ## figures beside the reference: tables, JSON, curves
	@tools/bench/run

shell: setup ## a shell in a VM with an rxe device and this tree (also: tools/vm/run --help)
	@tools/vm/run --rxe --shell

## Clean
clean: ## remove what was built from this tree's modules and tests
	rm -rf build/modules build/modules-debug build/clippy build/tests

distclean: ## remove build/ whole; the roots stay cached
	rm -rf build
	@echo "the cache, with root file systems and crates, stays in $(CACHE); make cacheclean removes it"

cacheclean: ## remove the cache: root file systems, crates, KVM verdict
	@tools/vm/roots clean

setup:
	@tools/setup

help: ## this list
	@echo 'make TARGET [VARIABLE=VALUE...], see Documentation/building.rst'
	@awk -F ':.*## ' \
		'/^## / { print ""; print substr($$0, 4) ":" } \
		 /^[a-z_-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
