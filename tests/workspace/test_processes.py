"""Process trees: who is signalled, and who never is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pytest_skilleval.workspace.processes import GroupTree, children, descendants, descends, kill_if, parent

linux = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
WAITING = "print(flush=True); input()"


@pytest.fixture
def child():
    started = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", WAITING],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    started.stdout.readline()
    yield started
    started.kill()
    started.communicate()


@linux
def test_a_process_is_only_killed_when_it_is_ours(child):
    assert not kill_if(child.pid, lambda _: False)
    assert child.poll() is None
    assert kill_if(child.pid, lambda pid: descends(pid, os.getpid()))
    assert child.wait(5) == -signal.SIGKILL


@linux
def test_a_process_of_somebody_else_does_not_descend_from_us(child):
    assert descends(child.pid, os.getpid())
    assert not descends(os.getpid(), child.pid)
    assert not descends(os.getppid(), os.getpid())
    assert not descends(1, os.getpid())
    assert not descends(2**22 + 1, os.getpid())


@linux
def test_a_dead_process_is_nobody_s_and_is_not_signalled(child):
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert parent(child.pid) is None
    assert not kill_if(child.pid, lambda pid: descends(pid, os.getpid()))


@linux
def test_a_process_named_to_mislead_is_read_right(tmp_path):
    program = tmp_path / "a) R 1 ("
    program.write_text("#!/bin/sh\nread line\n")
    program.chmod(0o755)
    started = subprocess.Popen([program], stdin=subprocess.PIPE)
    try:
        assert parent(started.pid) == os.getpid()
    finally:
        started.communicate(b"\n")


@linux
def test_children_of_all_threads_are_found():
    code = (
        "import subprocess, sys, threading\n"
        "start = lambda: found.append(subprocess.Popen(['/bin/sleep', '60']))\n"
        "found = []\n"
        "thread = threading.Thread(target=lambda: (start(), print(found[0].pid, flush=True), sys.stdin.readline()))\n"
        "thread.start(); thread.join(); found[0].kill(); found[0].wait()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as started:
        inner = int(started.stdout.readline())
        assert children(started.pid) == [inner]
        assert inner in descendants(os.getpid())
        started.communicate(b"\n")


def test_without_a_subreaper_a_group_is_killed_once_and_never_again(child, monkeypatch):
    tree = GroupTree()
    tree.adopt(child.pid)
    killed, proven = tree.kill(time.monotonic() + 5)
    assert (killed, proven) == (1, False)
    assert tree.status is not None
    assert os.WTERMSIG(tree.status) == signal.SIGKILL
    monkeypatch.setattr(os, "killpg", lambda *_: pytest.fail("the group id may be somebody else's by now"))
    assert tree.kill(time.monotonic() + 5) == (0, False)
