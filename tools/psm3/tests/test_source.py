# SPDX-License-Identifier: GPL-2.0
"""What is taken for libfabric's source, and what makes a build out of date."""

import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "vm"))

from psm3lib import libfabric, source  # noqa: E402
from vmlib.report import Failure  # noqa: E402

TEXT = b"the source"
TARBALL = f"libfabric_{source.VERSION}.orig.tar.xz"


class SourceTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        cache = mock.patch.dict(os.environ, XDG_CACHE_HOME=folder.name)
        cache.start()
        self.addCleanup(cache.stop)
        self.place = source.folder()
        self.place.mkdir(parents=True)
        (self.place / TARBALL).write_bytes(TEXT)
        known = mock.patch.object(source, "SHA256", source.digest(self.place / TARBALL))
        known.start()
        self.addCleanup(known.stop)

    def test_a_whole_source_is_not_fetched_again(self):
        self.assertEqual(source.ensure(), self.place / TARBALL)

    def test_a_damaged_tarball_does_not_count(self):
        (self.place / TARBALL).write_bytes(TEXT + b"!")
        with mock.patch.object(source, "say"):
            self.assertIsNone(source.cached())

    def test_another_version_is_refused_by_name(self):
        (self.place / TARBALL).rename(self.place / "libfabric_9.9.orig.tar.xz")
        with self.assertRaisesRegex(Failure, "libfabric_9.9"):
            source.check(self.place, "suite", "mirror")

    def test_other_content_under_the_right_name_is_refused(self):
        (self.place / TARBALL).write_bytes(b"other")
        with self.assertRaisesRegex(Failure, "is not the libfabric"):
            source.check(self.place, "suite", "mirror")

    def test_an_archive_without_it(self):
        (self.place / TARBALL).unlink()
        with self.assertRaisesRegex(Failure, "has no source of libfabric"):
            source.check(self.place, "suite", "mirror")


class KeyTest(unittest.TestCase):
    def test_a_changed_header_is_another_build(self):
        before = libfabric.folder("release")
        with tempfile.NamedTemporaryFile() as file:
            file.write(libfabric.HEADER.read_bytes() + b"\n")
            file.flush()
            with mock.patch.object(libfabric, "HEADER", Path(file.name)):
                self.assertNotEqual(before, libfabric.folder("release"))

    def test_variants_do_not_share_a_directory(self):
        self.assertEqual(len({libfabric.folder(variant) for variant in libfabric.PREFIX}), 2)


class FirstErrorTest(unittest.TestCase):
    def setUp(self):
        file = tempfile.NamedTemporaryFile()
        self.addCleanup(file.close)
        self.log = Path(file.name)

    def test_a_full_disk_outranks_what_follows_from_it(self):
        self.log.write_text("error: cannot write\nln: No space left on device\n")
        self.assertIn("No space", libfabric.first_error(self.log))

    def test_without_an_error_the_last_words(self):
        self.log.write_text("one\ntwo\n\n")
        self.assertEqual(libfabric.first_error(self.log), "two")
