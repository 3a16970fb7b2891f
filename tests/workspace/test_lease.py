"""Homes are removed whatever is in them, and nothing else ever is."""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from pathlib import Path

import pytest

from pytest_skilleval.workspace.lease import Lease, NotOursError, check_home, remove_tree


@pytest.fixture
def base(tmp_path):
    (tmp_path / "base").mkdir()
    return tmp_path / "base"


def remove(path):
    parent = os.open(path.parent, os.O_RDONLY)
    try:
        return remove_tree(parent, os.fsencode(path.name))
    finally:
        os.close(parent)


class TestRefusals:
    @pytest.mark.parametrize("part", ["", ".", "..", "../other", "../../base2/x", "x/../../other"])
    def test_a_home_must_lie_strictly_below_its_base(self, base, part):
        with pytest.raises(NotOursError, match=r"not below|absolute|is or contains"):
            check_home(Path(f"{base}/{part}"), base)

    def test_the_folder_for_temporary_files_is_never_a_home(self, base, monkeypatch):
        (base / "tmp").mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(base / "tmp"))
        for home in (base / "tmp", base):
            with pytest.raises(NotOursError, match="temporary files"):
                check_home(home, base.parent)

    def test_the_user_s_home_is_never_one_nor_what_holds_it(self, base, monkeypatch):
        monkeypatch.setenv("HOME", str(base / "people" / "me"))
        for home in (base / "people" / "me", base / "people"):
            with pytest.raises(NotOursError, match="the user's home"):
                check_home(home, base)

    def test_the_current_folder_is_never_one(self, base, monkeypatch):
        (base / "here").mkdir()
        monkeypatch.chdir(base / "here")
        with pytest.raises(NotOursError, match="current folder"):
            check_home(base / "here", base)

    def test_a_current_folder_that_is_gone_is_no_trouble(self, base, monkeypatch):
        (base / "here").mkdir()
        monkeypatch.chdir(base / "here")
        (base / "here").rmdir()
        check_home(base / "home", base)
        os.chdir(base)

    def test_the_root_folder_is_no_base(self):
        with pytest.raises(NotOursError, match="root folder"):
            check_home(Path("/somewhere"), Path("/"))

    def test_a_link_in_the_way_does_not_lead_out_of_the_base(self, base, tmp_path):
        (tmp_path / "outside").mkdir()
        (base / "link").symlink_to(tmp_path / "outside")
        with pytest.raises(NotOursError, match="not below"):
            check_home(base / "link" / "home", base)

    def test_relative_paths_are_refused(self, base):
        with pytest.raises(NotOursError, match="absolute"):
            check_home(Path("home"), base)

    def test_the_parent_of_a_lease_may_not_be_a_link(self, base, tmp_path):
        (tmp_path / "outside").mkdir()
        (base / "run").symlink_to(tmp_path / "outside")
        with pytest.raises(OSError, match=r"Not a directory|Too many levels"):
            Lease(os.fsencode(base / "run" / "home"))
        assert list((tmp_path / "outside").iterdir()) == []


class TestRemoval:
    def test_write_protected_folders_go(self, base):
        deep = base / "home" / "a" / "b"
        deep.mkdir(parents=True)
        (deep / "file").write_text("x")
        for folder in (deep, deep.parent, base / "home"):
            folder.chmod(0o000)
        assert remove(base / "home") == []
        assert list(base.iterdir()) == []

    def test_links_are_removed_and_never_followed(self, base, tmp_path):
        outside = tmp_path / "outside"
        outside.mkdir(mode=0o500)
        home = base / "home"
        (home / "inner").mkdir(parents=True)
        for place in (home, home / "inner"):
            (place / "folder").symlink_to(outside)
            (place / "dangling").symlink_to("/no/such/file")
            (place / "loop").symlink_to(home)
        (outside.parent / "precious").write_text("x")
        (home / "file").symlink_to(outside.parent / "precious")
        assert remove(home) == []
        assert (tmp_path / "precious").read_text() == "x"
        assert outside.stat().st_mode & 0o777 == 0o500
        assert list(base.iterdir()) == []

    def test_a_home_that_is_a_link_is_only_unlinked(self, base, tmp_path):
        (tmp_path / "outside").mkdir()
        (tmp_path / "outside" / "precious").write_text("x")
        (base / "home").symlink_to(tmp_path / "outside")
        assert remove(base / "home") == []
        assert (tmp_path / "outside" / "precious").read_text() == "x"
        assert list(base.iterdir()) == []

    def test_fifos_sockets_and_odd_names_go(self, base):
        home = base / "home"
        home.mkdir()
        os.mkfifo(home / "fifo")
        (home / "-rf *").write_text("x")
        Path(os.fsdecode(os.fsencode(home) + b"/\xff\n")).mkdir()
        assert remove(home) == []
        assert list(base.iterdir()) == []

    def test_a_chain_deeper_than_any_path_or_stack_goes(self, base):
        home = base / "home"
        home.mkdir()
        at = os.open(home, os.O_RDONLY)
        for _ in range(3000):
            os.mkdir("deeper", dir_fd=at)
            below = os.open("deeper", os.O_RDONLY, dir_fd=at)
            os.close(at)
            at = below
        os.close(at)
        lowest = os.open(base, os.O_RDONLY)
        os.close(lowest)
        assert remove(home) == []
        assert list(base.iterdir()) == []
        # The kernel gives the lowest free number, so the same one again means that no descriptor was left open.
        again = os.open(base, os.O_RDONLY)
        os.close(again)
        assert again == lowest

    def test_what_is_not_there_is_no_problem(self, base):
        assert remove(base / "home") == []

    def test_what_cannot_be_removed_is_named(self, base, monkeypatch):
        (base / "home").mkdir()
        (base / "home" / "stuck").write_text("x")

        def refuse(name, *, dir_fd=None):
            raise PermissionError(1, "Operation not permitted", name)

        monkeypatch.setattr(os, "unlink", refuse)
        assert remove(base / "home") == ["stuck: Operation not permitted"]


class TestLease:
    def test_it_makes_the_folders_above_for_this_user_alone(self, base):
        lease = Lease(os.fsencode(base / "run" / "home"))
        assert (base / "run").stat().st_mode & 0o777 == 0o700
        assert (base / "run" / "home.lease").is_file()
        assert not (base / "run" / "home").exists()
        lease.close(remove_home=True)
        assert list((base / "run").iterdir()) == []

    def test_a_folder_of_another_user_is_refused(self, base, monkeypatch):
        monkeypatch.setattr(os, "getuid", lambda: 12345)
        with pytest.raises(PermissionError, match="belongs to another user"):
            Lease(os.fsencode(base / "home"))
        assert list(base.iterdir()) == []

    def test_only_one_holds_it(self, base):
        lease = Lease(os.fsencode(base / "home"))
        with pytest.raises(OSError, match="another trial"):
            Lease(os.fsencode(base / "home"))
        lease.close(remove_home=True)
        Lease(os.fsencode(base / "home")).close(remove_home=True)

    def test_a_home_that_cannot_be_removed_keeps_its_lease_for_the_next_sweep(self, base, monkeypatch):
        lease = Lease(os.fsencode(base / "home"))
        (base / "home").mkdir()
        monkeypatch.setattr("pytest_skilleval.workspace.lease.remove_tree", lambda *_: ["stuck: no"])
        assert lease.close(remove_home=True) == ["stuck: no"]
        assert (base / "home.lease").exists()


def test_a_lease_is_had_although_neighbours_keep_removing_the_empty_folders(tmp_path: Path) -> None:
    base = tmp_path / "base"
    stop = threading.Event()

    def sweep_for_ever() -> None:
        while not stop.is_set():
            for folder in (base / "run", base):
                with contextlib.suppress(OSError):
                    folder.rmdir()

    neighbour = threading.Thread(target=sweep_for_ever)
    neighbour.start()
    try:
        for number in range(300):
            lease = Lease(os.fsencode(base / "run" / f"home-{number}"))
            assert (base / "run" / f"home-{number}.lease").exists()
            assert lease.close(remove_home=True) == []
    finally:
        stop.set()
        neighbour.join()
