# SPDX-License-Identifier: GPL-2.0
"""Mirrors and options out of the host's apt configuration."""

import tempfile
import unittest
from pathlib import Path

from vmlib import mirrors
from vmlib.mirrors import Source
from vmlib.report import Failure

DEB822 = """\
# A comment
Types: deb deb-src
URIs: http://mirror.example/debian
Suites: bookworm
 bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://mirror.example/debian-security/
Suites: bookworm-security
Components: main

Types: deb-src
URIs: http://source.example/debian
Suites: bookworm

Enabled: no
Types: deb
URIs: http://off.example/debian
Suites: bookworm
"""


class ParseTest(unittest.TestCase):
    def test_deb822_takes_enabled_binary_sources(self):
        found = list(mirrors.parse_deb822(DEB822))
        self.assertEqual(
            [(source.uri, source.suite) for source in found],
            [
                ("http://mirror.example/debian", "bookworm"),
                ("http://mirror.example/debian", "bookworm-updates"),
                ("http://mirror.example/debian-security/", "bookworm-security"),
            ],
        )
        self.assertEqual(found[0].components, ("main", "contrib"))

    def test_deb822_with_embedded_key(self):
        text = (
            "Types: deb\nURIs: http://m.example/debian\nSuites: trixie\n"
            "Signed-By:\n -----BEGIN: x\n .\n abc\n"
        )
        self.assertEqual([s.suite for s in mirrors.parse_deb822(text)], ["trixie"])

    def test_one_line_with_options_and_comments(self):
        text = (
            "# deb http://old.example/debian bookworm main\n"
            "deb [arch=amd64 signed-by=/k.gpg] http://m.example/debian bookworm main # why\n"
            "deb-src http://m.example/debian bookworm main\n"
        )
        self.assertEqual(
            list(mirrors.parse_one_line(text)),
            [Source("http://m.example/debian", "bookworm", ("main",))],
        )

    def test_host_sources_reads_both_kinds_and_no_other_file(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "sources.list.d").mkdir()
            (folder / "sources.list").write_text("deb http://a.example/debian x main\n")
            (folder / "sources.list.d/b.sources").write_text(DEB822)
            (folder / "sources.list.d/c.list.disabled").write_text("deb http://c.example/d x m\n")
            uris = {source.uri for source in mirrors.host_sources(folder)}
        self.assertIn("http://a.example/debian", uris)
        self.assertIn("http://mirror.example/debian", uris)
        self.assertNotIn("http://c.example/d", uris)


class FindTest(unittest.TestCase):
    def setUp(self):
        self.sources = list(mirrors.parse_deb822(DEB822))

    def test_from_sources(self):
        found = mirrors.find_mirrors(self.sources, {})
        self.assertEqual(found.main, "http://mirror.example/debian")
        self.assertEqual(found.security, "http://mirror.example/debian-security")

    def test_environment_wins(self):
        environ = {"DEBIAN_MIRROR": "http://e/debian/", "DEBIAN_SECURITY_MIRROR": "http://e/s"}
        found = mirrors.find_mirrors(self.sources, environ)
        self.assertEqual((found.main, found.security), ("http://e/debian", "http://e/s"))

    def test_security_beside_main_when_not_named(self):
        found = mirrors.find_mirrors([Source("http://m.example/debian", "trixie", ())], {})
        self.assertEqual(found.security, "http://m.example/debian-security")

    def test_other_archives_are_not_mirrors(self):
        sources = [Source("https://packages.example/cloud", "main", ())]
        with self.assertRaisesRegex(Failure, "set DEBIAN_MIRROR"):
            mirrors.find_mirrors(sources, {})

    def test_mirror_list_file(self):
        with tempfile.NamedTemporaryFile("w", suffix=".list") as file:
            file.write("# mirrors\nhttps://one.example/debian\nhttps://two.example/debian\n")
            file.flush()
            source = Source(f"mirror+file://{file.name}", "trixie", ())
            self.assertEqual(mirrors.find_mirrors([source], {}).main, "https://one.example/debian")

    def test_mirror_list_file_missing(self):
        with self.assertRaisesRegex(Failure, "missing or empty"):
            mirrors.resolve_mirror_list("mirror+file:/nowhere/at.list")


class OptionsTest(unittest.TestCase):
    def test_only_ways_to_reach_a_mirror(self):
        dump = (
            'APT::Install-Recommends "1";\n'
            'Acquire::http::Proxy "http://proxy.example:3142";\n'
            'Acquire::https::CaInfo "/etc/ca.pem";\n'
            'Acquire::Check-Valid-Until "false";\n'
            'Acquire::Retries "";\n'
            'DPkg::Post-Invoke:: "rm -rf /var/cache/apt";\n'
            'Acquire::cdrom::mount "/media/cdrom/";\n'
        )
        self.assertEqual(
            mirrors.parse_options(dump),
            [
                'Acquire::http::Proxy "http://proxy.example:3142"',
                'Acquire::https::CaInfo "/etc/ca.pem"',
                'Acquire::Check-Valid-Until "false"',
            ],
        )
