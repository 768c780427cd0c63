# SPDX-License-Identifier: GPL-2.0
"""The probe on fake kernel trees: each lacks one thing."""

import tempfile
import unittest
from pathlib import Path

from checklib import probe

RUSTC = "rustc 1.85.1 (4eb161250 2025-03-15) (built from a source tarball)"
CONFIG = f"""\
CONFIG_CC_VERSION_TEXT="x86_64-linux-gnu-gcc-14 (Debian 14.2.0-19) 14.2.0"
CONFIG_RUSTC_VERSION_TEXT="{RUSTC}"
CONFIG_INFINIBAND=m
CONFIG_RUST=y
"""
FILES = {
    "Makefile": "",
    ".config": CONFIG,
    "Module.symvers": "",
    "rust/libkernel.rmeta": "",
    "include/config/kernel.release": "7.3.4+deb13-amd64\n",
    "drivers/infiniband/core/core_priv.h": "",
}


class ProbeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.kdir = Path(folder.name)
        self.versions = {
            "rustc": RUSTC,
            "bindgen": "bindgen 0.71.1",
            "x86_64-linux-gnu-gcc-14": "x86_64-linux-gnu-gcc-14 (Debian 14.2.0-19) 14.2.0",
        }
        for name, text in FILES.items():
            self.write(name, text)

    def write(self, name, text):
        path = self.kdir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def remove(self, name):
        (self.kdir / name).unlink()

    def probe(self, llvm=""):
        version = self.versions.get
        text = probe.missing(self.kdir, "rustc", lambda program: version(program, ""), llvm)
        self.assertNotIn("\n", text)
        return text

    def test_nothing_missing(self):
        self.assertEqual(self.probe(), "")

    def test_a_kernel_built_by_clang(self):
        head = 'CONFIG_CC_VERSION_TEXT="Debian clang version 19.1.7 (3+b1)"\nCONFIG_CC_IS_CLANG=y\n'
        self.write(".config", head + CONFIG.partition("\n")[2])
        self.assertIn("compiler clang is not installed", self.probe(llvm="1"))
        self.versions["clang"] = "Debian clang version 19.1.7 (3+b1)"
        self.assertIn("LLVM=1", self.probe())
        self.assertEqual(self.probe(llvm="1"), "")

    def test_no_such_tree(self):
        self.assertIn("does not exist", probe.missing(self.kdir / "nowhere"))

    def test_no_kernel_tree(self):
        self.remove("Makefile")
        self.assertIn("no kernel tree", self.probe())

    def test_not_configured(self):
        self.remove(".config")
        self.assertIn("not configured", self.probe())

    def test_rust_off(self):
        self.write(".config", CONFIG.replace("CONFIG_RUST=y", "# CONFIG_RUST is not set"))
        self.assertIn("CONFIG_RUST is off", self.probe())

    def test_infiniband_off(self):
        self.write(".config", CONFIG.replace("CONFIG_INFINIBAND=m", ""))
        self.assertIn("CONFIG_INFINIBAND is off", self.probe())

    def test_too_old(self):
        self.write("include/config/kernel.release", "6.12.9-amd64\n")
        self.assertIn("too old", self.probe())

    def test_no_metadata(self):
        self.remove("rust/libkernel.rmeta")
        self.assertIn("no Rust metadata", self.probe())

    def test_no_symvers(self):
        self.remove("Module.symvers")
        self.assertIn("no Module.symvers", self.probe())

    def test_headers_only(self):
        self.remove("drivers/infiniband/core/core_priv.h")
        (self.kdir / "drivers/infiniband/core").rmdir()
        self.assertIn("headers only", self.probe())

    def test_source_beside_the_build(self):
        self.remove("drivers/infiniband/core/core_priv.h")
        (self.kdir / "drivers/infiniband/core").rmdir()
        self.write("src/drivers/infiniband/core/core_priv.h", "")
        (self.kdir / "source").symlink_to("src")
        self.assertEqual(self.probe(), "")

    def test_no_rustc(self):
        del self.versions["rustc"]
        self.assertIn("rustc is not installed", self.probe())

    def test_other_rustc(self):
        self.versions["rustc"] = "rustc 1.95.0 (f2d3ce0bd 2026-03-21)"
        self.assertIn("the kernel was built with 'rustc 1.85.1", self.probe())

    def test_no_bindgen(self):
        del self.versions["bindgen"]
        self.assertIn("bindgen is not installed", self.probe())

    def test_no_compiler(self):
        del self.versions["x86_64-linux-gnu-gcc-14"]
        self.assertIn("gcc-14 is not installed", self.probe())
