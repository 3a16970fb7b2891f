"""A command under its supervisor: what it is given, how it ends, and that nothing of it is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import pytest_skilleval
from pytest_skilleval.workspace.command import Command, Limits
from pytest_skilleval.workspace.trial_lease import SupervisionError

linux = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")

STUBBORN = """
import os, signal, subprocess, sys, time
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
def stay():
    while True:
        try: os.write(1, b"still here\\n")
        except OSError: pass
        time.sleep(0.01)
if os.fork() == 0: stay()                               # a plain child
if os.fork() == 0: os.setsid(); stay()                  # in a session of its own
if os.fork() == 0:                                      # a daemon: double fork, parent gone
    os.setsid()
    if os.fork() == 0: stay()
    os._exit(0)
open("ready", "w").close()
stay()
"""


def test_a_supervisor_imports_nothing_but_the_standard_library_and_this_package():
    root = str(Path(pytest_skilleval.__file__).parent.parent)
    code = (
        "import sys; sys.path += sys.argv[1:]; import pytest_skilleval.workspace.forkserver;"
        "print([name for name in ('pydantic', 'numpy', 'scipy', 'yaml', 'jinja2', 'pytest') if name in sys.modules])"
    )
    packages = str(Path(pytest.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, root, packages], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_by_default_a_command_that_hears_nothing_is_killed_within_five_seconds_of_the_wall():
    stop = Command.__dataclass_fields__["stop"].default
    assert [number for number, _ in stop] == [signal.SIGINT, signal.SIGTERM]
    assert sum(grace for _, grace in stop) <= 4.0


class TestStart:
    def test_exit_status_output_and_errors_come_back(self, bench):
        ended = bench.sh("echo out; echo err >&2; exit 7")
        assert (ended.exit_status, ended.signal, ended.reason, ended.message) == (7, None, "exited", "")
        assert (bench.stdout, bench.stderr) == (b"out\n", b"err\n")
        assert (ended.stdout.bytes_total, ended.stderr.bytes_kept) == (4, 4)
        assert ended.tree == "dead"
        assert ended.killed == 0
        assert ended.sandbox == "none"
        assert ended.cpu is not None
        assert ended.max_rss is not None
        assert ended.last_output_age is not None

    def test_death_by_a_signal_is_told_apart_from_an_exit(self, bench):
        ended = bench.sh("kill -SEGV $$")
        assert (ended.exit_status, ended.signal, ended.reason) == (None, signal.SIGSEGV, "exited")

    def test_the_environment_is_what_was_given_and_nothing_else(self, bench, monkeypatch):
        monkeypatch.setenv("CANARY_OF_THE_WORKER", "1")
        bench.run("/usr/bin/env", env={"A": "ü=\udcff", "B": ""})
        assert bench.stdout == b"A=\xc3\xbc=\xff\nB=\n"

    def test_b28_stdin_is_at_its_end_at_once(self, bench):
        ended = bench.sh("cat; echo done", timeout=5)
        assert (ended.reason, bench.stdout) == ("exited", b"done\n")

    def test_stdin_can_be_a_file(self, bench, tmp_path):
        (tmp_path / "prompt").write_text("hello")
        bench.run("/bin/cat", stdin=tmp_path / "prompt")
        assert bench.stdout == b"hello"

    def test_stdin_is_never_a_fifo(self, bench, tmp_path):
        os.mkfifo(tmp_path / "prompt")
        ended = bench.run("/bin/cat", stdin=tmp_path / "prompt")
        assert (ended.reason, ended.exit_status) == ("spawn_failed", None)
        assert "not a regular file" in ended.message

    @linux
    def test_no_descriptor_is_inherited(self, bench):
        bench.python("import os; print([fd for fd in range(3, 200) if os.path.exists(f'/proc/self/fd/{fd}')])")
        assert bench.stdout == b"[]\n"

    def test_signals_are_at_their_defaults_and_unblocked(self, bench):
        bench.python(
            "import signal as s; print([n for n in s.valid_signals() - {s.SIGPIPE, s.SIGXFSZ, s.SIGINT}"
            " if s.getsignal(n) is not s.SIG_DFL], s.pthread_sigmask(s.SIG_BLOCK, ()),"
            " s.getsignal(s.SIGINT) is s.default_int_handler)"
        )
        assert bench.stdout == b"[] set() True\n"
        # Python ignores SIGPIPE by itself, so a shell has to show that it was not ignored before.
        bench.sh("sh -c 'kill -PIPE $$; echo survived'; echo $?", env={"PATH": os.environ["PATH"]})
        assert bench.stdout == b"141\n"

    def test_it_leads_a_session_without_a_terminal(self, bench):
        bench.python("import os; print(os.getsid(0) == os.getpid() == os.getpgid(0))")
        assert bench.stdout == b"True\n"

    def test_limits_hold_and_cannot_be_raised_again(self, bench):
        bench.sh(
            "sleep 0.2; ulimit -f 9999 2>/dev/null || echo refused; ulimit -n; ulimit -c; head -c 5000000 /dev/zero > big; wc -c < big",
            limits=Limits(file_size=1024 * 1024, open_files=321),
        )
        assert bench.stdout.split() == [b"refused", b"321", b"0", b"1048576"]

    @pytest.mark.parametrize(
        ("argv", "word"),
        [
            (("no-such-program",), "PATH"),
            (("/no/such/program",), "No such file"),
            (("./text",), "Permission denied"),
        ],
    )
    def test_a_program_that_cannot_be_started_is_said_so(self, bench, argv, word):
        with bench.lease() as lease:
            (bench.home / "text").write_text("no program")
            ended = lease.run(bench.command(*argv))
            assert (ended.reason, ended.exit_status, ended.signal) == ("spawn_failed", None, None)
            assert word in ended.message
            assert argv[0] in ended.message
            assert lease.run(bench.command("/bin/true")).exit_status == 0

    def test_a_missing_working_folder_is_said_so(self, bench, tmp_path):
        ended = bench.run("/bin/true", cwd=tmp_path / "gone")
        assert ended.reason == "spawn_failed"
        assert "gone" in ended.message

    def test_an_output_folder_that_is_not_there_is_said_so(self, bench, tmp_path):
        ended = bench.run("/bin/true", stdout=tmp_path / "gone" / "stdout")
        assert ended.reason == "spawn_failed"
        assert "gone" in ended.message

    def test_a_path_entry_of_the_agent_s_own_folder_is_not_searched(self, bench):
        with bench.lease() as lease:
            (bench.home / "agent").write_text("#!/bin/sh\necho hijacked\n")
            (bench.home / "agent").chmod(0o755)
            ended = lease.run(bench.command("agent", env={"PATH": ":.:/usr/bin"}))
        assert ended.reason == "spawn_failed"


class TestEnd:
    def test_what_it_left_running_is_killed_and_counted_after_a_normal_end(self, bench):
        ended = bench.sh("sleep 60 & setsid sleep 60 & (setsid nohup sleep 60 >/dev/null 2>&1 &); echo done")
        assert (ended.reason, ended.exit_status, ended.tree) == ("exited", 0, "dead")
        assert ended.killed == 3
        assert bench.stdout == b"done\n"
        assert bench.alive() == []

    def test_pipes_held_by_orphans_are_not_waited_for(self, bench):
        started = time.monotonic()
        ended = bench.sh("setsid sleep 60 & echo done")
        assert ended.reason == "exited"
        assert time.monotonic() - started < 10

    def test_b29_a_stubborn_daemonising_writing_tree_dies_at_the_wall(self, bench):
        ended = bench.python(STUBBORN, timeout=1.0)
        assert (ended.reason, ended.tree, ended.signal) == ("timeout", "dead", signal.SIGKILL)
        assert ended.killed == 4
        assert "1 s" in ended.message
        assert ended.duration < 1.0 + 5.0
        assert b"still here\n" in bench.stdout
        assert bench.alive() == []

    def test_the_wall_asks_first_and_the_answer_is_kept(self, bench):
        ended = bench.sh("trap 'echo last words; exit 5' INT; echo on; sleep 60 & wait", timeout=0.5)
        assert (ended.reason, ended.exit_status) == ("timeout", 5)
        assert bench.stdout == b"on\nlast words\n"
        assert bench.alive() == []

    def test_the_second_signal_comes_when_the_first_did_not_help(self, bench):
        ended = bench.sh("trap '' INT; trap 'echo term; exit 6' TERM; while :; do sleep 0.05; done", timeout=0.5)
        assert (ended.reason, ended.exit_status) == ("timeout", 6)
        assert bench.stdout == b"term\n"

    def test_b25_a_result_without_an_end_is_killed_after_the_linger(self, bench):
        ended = bench.sh(
            """echo '{"type":"result","result":"hello"}'; sleep 60""", result_markers=(b'"type":"result"',), linger=0.3
        )
        assert (ended.reason, ended.message) == ("lingered", "killed after result")
        assert 0.3 <= ended.duration < 5
        assert ended.last_output_age is not None
        assert ended.last_output_age >= 0.3
        assert bench.stdout == b'{"type":"result","result":"hello"}\n'
        assert bench.alive() == []

    def test_b25_a_result_with_an_end_is_a_plain_exit(self, bench):
        ended = bench.sh(
            """echo '{"type":"result"}'; sleep 0.2; echo bye""", result_markers=(b'"type":"result"',), linger=5.0
        )
        assert (ended.reason, ended.message, ended.exit_status) == ("exited", "", 0)

    def test_a_tick_that_raises_cancels_the_command_and_comes_out(self, bench):
        def tick() -> None:
            raise KeyboardInterrupt

        with bench.lease() as lease:
            with pytest.raises(KeyboardInterrupt):
                lease.run(bench.command("/bin/sh", "-c", "trap '' INT TERM; sleep 60"), tick)
            assert bench.alive() == []
            assert lease.run(bench.command("/bin/true")).exit_status == 0

    @linux
    def test_a_process_that_forks_and_exits_for_ever_is_caught(self, bench):
        hopper = "import os, time\nfor _ in range(100_000):\n    if os.fork(): os._exit(0)\n    time.sleep(0.001)"
        ended = bench.python(f"import os\nif os.fork(): os._exit(0)\n{hopper}")
        assert ended.tree == "dead"
        assert bench.alive() == []

    @linux
    def test_a_chain_of_many_children_is_killed(self, bench):
        ended = bench.python(
            "import os, time\nfor _ in range(80):\n    if os.fork(): time.sleep(60)\nopen('last', 'w')\ntime.sleep(60)",
            timeout=2.0,
            stop=(),
        )
        assert ended.killed == 81
        assert bench.alive() == []

    def test_a_stopped_process_is_killed_too(self, bench):
        ended = bench.sh("kill -STOP $$", timeout=0.3)
        assert (ended.reason, ended.tree) == ("timeout", "dead")


class TestQuota:
    def test_too_many_bytes_in_the_home_are_the_end(self, bench):
        ended = bench.sh("head -c 9000000 /dev/zero > big; sleep 60", disk_limit=8_000_000)
        assert ended.reason == "quota"
        assert "limit 8000000" in ended.message
        assert ended.duration < 10

    def test_too_many_files_in_the_home_are_the_end(self, bench):
        ended = bench.sh("mkdir -p a/b; for i in 1 2 3 4 5 6 7 8 9; do : > a/b/$i; done; sleep 60", file_limit=10)
        assert (ended.reason, ended.message) == ("quota", "killed with more than 10 files in its home (limit 10)")

    def test_what_a_quick_command_leaves_is_looked_at_as_well(self, bench):
        ended = bench.sh("head -c 9000000 /dev/zero > big", disk_limit=8_000_000)
        assert (ended.reason, ended.exit_status) == ("quota", 0)

    def test_links_out_of_the_home_count_nothing(self, bench):
        ended = bench.sh("ln -s / root; ln -s /usr usr", disk_limit=8_000_000, file_limit=10)
        assert ended.reason == "exited"


class TestOutput:
    def test_a_flood_is_cut_and_counted(self, bench):
        ended = bench.python(
            "import os\nline = b'x' * 99 + b'\\n'\nfor _ in range(2000): os.write(1, line * 1000)",
            output_limit=1_000_000,
        )
        assert ended.stdout.bytes_total == 200_000_000
        assert ended.stdout.truncated
        assert ended.stdout.bytes_kept < 1_000_200
        assert len(bench.stdout) == ended.stdout.bytes_kept
        assert bench.stdout.splitlines()[-1].startswith(b'{"type":"skilleval.cut","bytes":199000000,')

    @linux
    def test_b39_a_300_megabyte_line_neither_fills_memory_nor_hides_the_result(self, bench):
        peaks: list[int] = []
        with bench.lease() as lease:

            def tick() -> None:
                text = Path(f"/proc/{lease.supervisor}/status").read_text()
                peaks.append(int(text.split("VmHWM:")[1].split()[0]))

            ended = lease.run(
                bench.command(
                    "/bin/sh",
                    "-c",
                    'head -c 5000000 /dev/zero | tr "\\0" y; echo; head -c 300000000 /dev/zero | tr "\\0" x; echo; '
                    """echo '{"type":"result"}'; sleep 0.6""",
                    result_markers=(b'"type":"result"',),
                    linger=5.0,
                ),
                tick,
            )
        first, marker, result = bench.stdout.splitlines()
        assert len(first) == 5_000_000
        assert marker.startswith(b'{"type":"skilleval.cut","bytes":300000001,')
        assert result == b'{"type":"result"}'
        assert ended.stdout.cut_lines == 1
        assert max(peaks) < 30 * 1024

    def test_b43_secrets_are_masked_in_both_streams(self, bench):
        secret = "sk-test-AAAA0123456789"
        ended = bench.sh(
            'printf %s "$KEY" | cut -c1-9 | tr -d "\\n"; sleep 0.1; printf "%s\\n" "$KEY" | cut -c10-; echo "key $KEY" >&2',
            env=bench.env | {"KEY": secret},
            secrets=(secret,),
        )
        assert bench.stdout == b"[redacted]\n"
        assert bench.stderr == b"key [redacted]\n"
        assert ended.stdout.bytes_total == len(secret) + 1


class TestHome:
    def test_one_lease_covers_several_commands_and_then_the_home_is_gone(self, bench):
        with bench.lease() as lease:
            assert lease.run(bench.command("/bin/sh", "-c", "echo 1 > state")).exit_status == 0
            assert lease.run(bench.command("/bin/cat", "state")).exit_status == 0
            assert bench.stdout == b"1\n"
            assert bench.left() == ["run/one", "run/one.lease", "run/one/state"]
        assert bench.left() == []

    def test_a_home_that_is_kept_has_no_lease(self, bench):
        with bench.lease() as lease:
            lease.run(bench.command("/bin/sh", "-c", "echo 1 > state"))
            lease.keep = True
        assert bench.left() == ["run/one", "run/one/state"]

    def test_the_home_may_be_removed_before(self, bench):
        with bench.lease() as lease:
            lease.run(bench.command("/bin/true"))
            bench.home.rmdir()
        assert bench.left() == []

    def test_closing_twice_is_harmless(self, bench):
        lease = bench.lease()
        lease.close()
        lease.close()
        assert bench.left() == []

    def test_two_trials_never_share_a_home(self, bench):
        with bench.lease() as lease:
            with pytest.raises(SupervisionError, match="another trial holds the lease"):
                bench.spawner.lease(bench.home, bench.base)
            assert lease.run(bench.command("/bin/true")).exit_status == 0

    def test_trials_run_side_by_side(self, bench):
        ended: list[object] = []

        def trial(number: int) -> None:
            ended.append(bench.another(f"trial-{number}").sh(f"sleep 0.2; exit {number}").exit_status)

        threads = [threading.Thread(target=trial, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(ended) == list(range(8))


class TestWithoutSubreaper:
    def test_the_group_dies_and_the_tree_is_called_unproven(self, portable_bench):
        ended = portable_bench.sh("trap '' INT TERM; echo $$; sleep 60 & sleep 60 & wait; wait", timeout=0.4)
        assert (ended.reason, ended.tree, ended.signal) == ("timeout", "unproven", signal.SIGKILL)
        assert portable_bench.dies()
        assert portable_bench.left() == []

    def test_background_jobs_of_the_group_die_after_a_normal_end(self, portable_bench):
        ended = portable_bench.sh("sleep 60 & echo done")
        assert (ended.reason, ended.exit_status, ended.tree) == ("exited", 0, "unproven")
        assert portable_bench.stdout == b"done\n"
        assert portable_bench.dies()
