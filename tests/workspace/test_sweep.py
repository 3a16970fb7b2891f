"""The sweep at the start of a run: what nobody owns goes, what somebody owns stays."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_skilleval.workspace.lease import Lease, NotOursError
from pytest_skilleval.workspace.sweep import Swept, belongs, reclaim, sweep

linux = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
NOTHING = Swept(0, 0, 0, ())


@pytest.fixture
def base(tmp_path):
    (tmp_path / "base").mkdir()
    return tmp_path / "base"


@pytest.fixture
def process():
    """Starts a process that waits; ends it afterwards."""
    started = []

    def start(**settings):
        started.append(
            subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", "print(flush=True); input()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                **settings,
            )
        )
        started[-1].stdout.readline()
        return started[-1]

    yield start
    for one in started:
        one.kill()
        one.communicate()


def abandon(home):
    """Leave a home as a killed run does: with a lease that nobody holds."""
    home.mkdir(parents=True)
    (home / "file").write_text("x")
    home.with_name(home.name + ".lease").touch()
    return home


def test_nothing_there_is_nothing_done(base):
    assert sweep(base) == NOTHING
    assert sweep(base / "missing") == NOTHING


def test_abandoned_homes_and_their_empty_run_folder_go(base):
    abandon(base / "run-1" / "a")
    abandon(base / "run-1" / "b")
    abandon(base / "c")
    assert sweep(base) == Swept(3, 0, 0, ())
    assert list(base.iterdir()) == []


def test_a_lease_without_a_home_goes(base):
    (base / "run").mkdir()
    (base / "run" / "a.lease").touch()
    assert sweep(base).homes == 1
    assert list(base.iterdir()) == []


def test_an_owned_home_stays(base):
    abandon(base / "run" / "dead")
    lease = Lease(os.fsencode(base / "run" / "living"))
    (base / "run" / "living").mkdir()
    assert sweep(base) == Swept(1, 0, 1, ())
    assert sorted(path.name for path in (base / "run").iterdir()) == ["living", "living.lease"]
    lease.close(remove_home=True)


def test_a_home_without_a_lease_stays(base):
    (base / "run" / "kept").mkdir(parents=True)
    assert sweep(base) == NOTHING
    assert (base / "run" / "kept").is_dir()


def test_leases_inside_a_home_are_not_believed(base):
    lease = Lease(os.fsencode(base / "living"))
    abandon(base / "living" / "inner")
    assert sweep(base) == Swept(0, 0, 1, ())
    assert (base / "living" / "inner" / "file").exists()
    lease.close(remove_home=True)


def test_a_lease_that_is_a_link_or_a_folder_is_not_believed(base, tmp_path):
    (tmp_path / "target.lease").touch()
    for name in ("linked", "folder"):
        (base / name).mkdir()
    (base / "linked.lease").symlink_to(tmp_path / "target.lease")
    (base / "folder.lease").mkdir()
    assert sweep(base) == NOTHING
    assert (base / "linked").is_dir()
    assert (base / "folder").is_dir()


def test_a_run_folder_that_is_a_link_is_not_followed(base, tmp_path):
    abandon(tmp_path / "elsewhere" / "home")
    (base / "run").symlink_to(tmp_path / "elsewhere")
    assert sweep(base) == NOTHING
    assert (tmp_path / "elsewhere" / "home" / "file").exists()


def test_a_base_of_another_user_is_left_alone(base, monkeypatch):
    abandon(base / "home")
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    swept = sweep(base)
    assert swept.homes == 0
    assert "belongs to another user" in swept.problems[0]
    assert (base / "home" / "file").exists()


def test_two_sweeps_at_once_remove_each_home_once(base):
    for number in range(30):
        abandon(base / "run" / str(number))
    code = "import sys; from pathlib import Path; from pytest_skilleval.workspace.sweep import sweep; print(sweep(Path(sys.argv[1])).homes)"
    root = str(Path(__file__).parents[2])
    sweeps = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(base)], stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": root}
        )
        for _ in range(3)
    ]
    assert sum(int(one.communicate()[0]) for one in sweeps) == 30
    assert list(base.iterdir()) == []


@linux
@pytest.mark.parametrize("name", ["HOME", "TMPDIR", "SKILLEVAL_HOME"])
def test_processes_with_the_home_in_their_environment_are_killed(base, process, name):
    home = abandon(base / "run" / "a")
    running = process(env={name: f"{home}/tmp"})
    assert sweep(base) == Swept(1, 1, 0, ())
    assert running.wait(5) == -signal.SIGKILL


@linux
def test_a_process_at_work_in_the_home_is_killed(base, process):
    home = abandon(base / "run" / "a")
    running = process(env={}, cwd=home, start_new_session=True)
    assert sweep(base) == Swept(1, 1, 0, ())
    assert running.wait(5) == -signal.SIGKILL


@linux
def test_a_shell_on_a_terminal_that_looks_around_in_the_home_is_not(base, tmp_path):
    home = abandon(base / "run" / "a")
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(home)
        os.execve("/bin/cat", ["cat"], {})
    try:
        os.write(terminal, b"hello\n")
        assert os.read(terminal, 5) == b"hello"
        assert sweep(base) == Swept(1, 0, 0, ())
        os.kill(pid, 0)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.close(terminal)
        os.waitpid(pid, 0)


@linux
def test_other_processes_are_spared(base, process):
    home = abandon(base / "run" / "a")
    near = process(env={"HOME": f"{home}-2", "NOTE": f"HOME={home}", "PATH": str(home)}, cwd=base)
    assert sweep(base) == Swept(1, 0, 0, ())
    assert near.poll() is None


@linux
def test_a_sweep_never_kills_itself_or_who_started_it(base):
    home = abandon(base / "run" / "a")
    code = (
        "import subprocess, sys\n"
        "inner = 'import sys; from pathlib import Path; from pytest_skilleval.workspace.sweep import sweep; print(sweep(Path(sys.argv[1])))'\n"
        "sys.exit(subprocess.run([sys.executable, '-c', inner, sys.argv[1]]).returncode)"
    )
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", code, str(base)],
        env=os.environ | {"PYTHONPATH": root, "HOME": str(home)},
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "Swept(homes=1, processes=0, owned=0, problems=())\n"


@linux
def test_a_zombie_belongs_to_nobody(base, process):
    home = abandon(base / "a")
    running = process(env={"HOME": str(home)})
    assert belongs(running.pid, [os.fsencode(home)])
    running.kill()
    os.waitid(os.P_PID, running.pid, os.WEXITED | os.WNOWAIT)
    assert not belongs(running.pid, [os.fsencode(home)])


def test_one_home_can_be_reclaimed(base):
    home = abandon(base / "run" / "a")
    abandon(base / "run" / "b")
    assert reclaim(home, base) == Swept(1, 0, 0, ())
    assert sorted(path.name for path in (base / "run").iterdir()) == ["b", "b.lease"]


def test_what_is_not_below_the_base_is_not_reclaimed(base, tmp_path):
    home = abandon(tmp_path / "elsewhere")
    with pytest.raises(NotOursError):
        reclaim(home, base)
    assert (home / "file").exists()
