"""The sandbox: what an agent sees and can change inside, and that nobody believes in one that is not there."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_skilleval.workspace.sandbox import SandboxPlan, SandboxUnavailable, detect

needs_bubblewrap = pytest.mark.skipif(detect("auto").kind == "none", reason=detect("auto").reason or "works")


@pytest.fixture
def plan():
    found = detect("auto").plan()
    assert found is not None
    return found


def fake_bwrap(folder, script):
    folder.mkdir()
    (folder / "bwrap").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "bwrap").chmod(0o755)
    return str(folder)


class TestDetection:
    def test_b62_a_bubblewrap_that_fails_is_not_used_and_its_words_are_the_reason(self, tmp_path, monkeypatch):
        monkeypatch.setenv(
            "PATH", fake_bwrap(tmp_path / "bin", "echo 'No permissions to create namespace' >&2; exit 1")
        )
        found = detect("auto")
        assert (found.kind, found.version, found.plan()) == ("none", "", None)
        assert "exit status 1, No permissions to create namespace" in found.reason
        assert str(tmp_path / "bin" / "bwrap") in found.reason

    def test_b62_require_is_one_clear_error(self, tmp_path, monkeypatch):
        monkeypatch.setenv("PATH", fake_bwrap(tmp_path / "bin", "exit 1"))
        with pytest.raises(SandboxUnavailable, match=r"required but .*exit status 1; install bubblewrap.* auto or off"):
            detect("require")

    def test_b62_a_bubblewrap_that_only_knows_its_version_is_not_believed(self, tmp_path, monkeypatch):
        monkeypatch.setenv(
            "PATH", fake_bwrap(tmp_path / "bin", '[ "$1" = --version ] && { echo bubblewrap 9; exit; }; exit 1')
        )
        assert detect("auto").kind == "none"

    def test_a_missing_bubblewrap_is_said_so(self, tmp_path, monkeypatch):
        monkeypatch.setenv("PATH", str(tmp_path))
        assert detect("auto").reason == "bubblewrap (bwrap) is not in PATH"
        with pytest.raises(SandboxUnavailable, match="not in PATH"):
            detect("require")

    def test_off_does_not_look(self, tmp_path, monkeypatch):
        monkeypatch.setenv("PATH", fake_bwrap(tmp_path / "bin", f"touch {tmp_path}/called"))
        assert (detect("off").kind, detect("off").reason) == ("none", "switched off")
        assert not (tmp_path / "called").exists()

    def test_it_is_tried_once_for_each_bubblewrap(self, tmp_path, monkeypatch):
        monkeypatch.setenv("PATH", fake_bwrap(tmp_path / "bin", f"/bin/echo x >> {tmp_path}/calls; exit 1"))
        assert detect("auto") is detect("auto")
        assert len((tmp_path / "calls").read_text().split()) == 1

    @needs_bubblewrap
    def test_the_probe_leaves_nothing_behind(self, tmp_path, monkeypatch):
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        monkeypatch.setattr("tempfile.tempdir", None)
        detect.__globals__["_probe"].cache_clear()
        assert detect("auto").kind == "bubblewrap"
        assert list(tmp_path.iterdir()) == []


class TestPlan:
    def test_no_variable_is_in_the_arguments(self, tmp_path):
        line = SandboxPlan(program=Path("/usr/bin/bwrap")).wrap(
            ("true",), cwd=tmp_path, home=tmp_path, env={"KEY": "sk-test-AAAA", "PATH": "/usr/bin"}
        )
        assert "sk-test-AAAA" not in " ".join(line)
        assert line[0] == "/usr/bin/bwrap"
        assert line[-2:] == ("--", "true")


@needs_bubblewrap
class TestInside:
    def test_the_ending_is_told_as_without(self, bench, plan):
        ended = bench.sh("echo out; echo err >&2; exit 7", sandbox=plan)
        assert (ended.exit_status, ended.reason, ended.tree, ended.sandbox) == (7, "exited", "dead", "bubblewrap")
        assert (ended.killed, bench.stdout, bench.stderr) == (0, b"out\n", b"err\n")

    def test_b28_stdin_is_at_its_end_at_once(self, bench, plan):
        assert bench.sh("cat; echo done", sandbox=plan, timeout=5).reason == "exited"
        assert bench.stdout == b"done\n"

    def test_the_environment_is_what_was_given(self, bench, plan, monkeypatch):
        monkeypatch.setenv("CANARY_OF_THE_WORKER", "1")
        bench.run("env", env={"A": "1", "PATH": "/usr/bin:/bin"}, sandbox=plan)
        names = {line.partition(b"=")[0] for line in bench.stdout.splitlines()}
        assert names == {b"A", b"PATH", b"PWD"}  # PWD is bubblewrap's

    def test_home_and_working_folder_are_its_own_and_kept(self, bench, plan, tmp_path):
        work = tmp_path / "work"
        work.mkdir()
        with bench.lease() as lease:
            ended = lease.run(
                bench.command("/bin/sh", "-c", "pwd; echo 1 > here; echo 2 > $HOME/there", cwd=work, sandbox=plan)
            )
            assert (ended.exit_status, bench.stderr) == (0, b"")
            assert (work / "here").read_text() == "1\n"
            assert (bench.home / "there").read_text() == "2\n"
        assert bench.stdout == f"{work}\n".encode()

    def test_it_sees_its_own_processes_only(self, bench, plan):
        bench.sh("ls /proc | grep -c '^[0-9]*$'; echo $$", sandbox=plan)
        count, own = map(int, bench.stdout.split())
        assert count <= 5
        assert own <= 5

    def test_nothing_outside_can_be_written(self, bench, plan, tmp_path):
        canary = tmp_path / "canary"
        canary.write_text("x")
        targets = ["/etc/passwd", "/usr/bin/env", "/bin/new", "/var/log/new", "/opt/new", str(canary), "/home/new", "/root/new",
                   "/run/new", "/proc/sys/kernel/hostname", "/sys/kernel/new", str(Path(__file__))]  # fmt: skip
        bench.sh(
            f"for f in {' '.join(targets)}; do echo y 2>/dev/null >> $f && echo wrote $f; done; true", sandbox=plan
        )
        assert canary.read_text() == "x"
        assert not Path(__file__).read_text().endswith("y\n")
        assert [line for line in bench.stdout.splitlines() if b"canary" not in line] == []
        for target in ("/bin/new", "/var/log/new", "/opt/new", "/home/new", "/root/new", "/run/new"):
            assert not os.access(target, os.F_OK)

    def test_other_people_s_temporary_files_homes_and_sockets_are_not_there(self, bench, plan, tmp_path):
        (tmp_path / "canary").write_text("x")
        env = {"PATH": "/usr/bin:/bin"}
        bench.sh(f"cat {tmp_path}/canary; ls -A /home /root /run /var/tmp /mnt", env=env, sandbox=plan)
        assert bench.stdout == b"/home:\n\n/mnt:\n\n/root:\n\n/run:\n\n/var/tmp:\n"

    def test_root_cannot_change_the_kernel_s_settings(self, bench, plan):
        bench.sh(
            "for f in $(find /proc/sys /proc/sysrq-trigger -type f 2>/dev/null); do [ -w $f ] && echo $f; done",
            sandbox=plan,
        )
        assert bench.stdout == b""

    def test_the_real_home_is_empty_but_for_the_programs_of_path(self, bench, plan, tmp_path, monkeypatch):
        person = tmp_path / "person"
        version = person / ".nvm" / "v1"
        (version / "bin").mkdir(parents=True)
        (version / "lib").mkdir()
        (version / "lib" / "module").write_text("module\n")
        (version / "bin" / "agent").write_text("#!/bin/sh\ncat ${0%/*}/../lib/module; ls -A $REAL; cat $REAL/.secret\n")
        (version / "bin" / "agent").chmod(0o755)
        (person / ".secret").write_text("sk-test")
        (person / ".claude").mkdir()
        monkeypatch.setenv("HOME", str(person))
        env = {"PATH": f"{version}/bin:/usr/bin:/bin", "HOME": str(bench.home), "REAL": str(person)}
        bench.run("agent", env=env, sandbox=plan)
        assert bench.stdout == b"module\n.nvm\n"
        assert b"sk-test" not in bench.stderr

    def test_a_program_behind_a_link_out_of_a_bin_folder_runs(self, bench, plan, tmp_path, monkeypatch):
        person = tmp_path / "person"
        (person / ".local" / "bin").mkdir(parents=True)
        (person / ".local" / "share" / "agent" / "versions").mkdir(parents=True)
        program = person / ".local" / "share" / "agent" / "versions" / "1.2"
        program.write_text("#!/bin/sh\necho ran\n")
        program.chmod(0o755)
        (person / ".local" / "share" / "secret").write_text("sk-test")
        (person / ".local" / "bin" / "agent").symlink_to(program)
        monkeypatch.setenv("HOME", str(person))
        env = {"PATH": f"{person}/.local/bin:/usr/bin:/bin", "HOME": str(bench.home)}
        assert bench.run("agent", env=env, sandbox=plan).exit_status == 0
        assert bench.stdout == b"ran\n"
        bench.sh(f"cat {person}/.local/share/secret", env=env, sandbox=plan)
        assert bench.stdout == b""

    def test_this_interpreter_runs_wherever_it_is_installed(self, bench, plan):
        env = bench.env | {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
        bench.run(Path(sys.executable).name, "-c", "import json, ssl; print(json.dumps(1))", env=env, sandbox=plan)
        assert (bench.stdout, bench.stderr) == (b"1\n", b"")

    def test_the_project_is_hidden_but_for_what_is_asked_for(self, bench):
        project = Path("/opt") if os.access("/opt", os.W_OK) else None
        if project is None:
            pytest.skip("needs a folder outside the temporary ones that can be written")
        project = project / f"skilleval-test-{os.getpid()}"
        try:
            (project / "cases").mkdir(parents=True)
            (project / "cases" / "expected").write_text("42")
            (project / "skill").mkdir()
            (project / "skill" / "SKILL.md").write_text("text\n")
            hiding = detect("auto").plan(hidden=[project], readable=[project / "skill"])
            bench.sh(f"ls -A {project}; cat {project}/skill/SKILL.md {project}/cases/expected", sandbox=hiding)
            assert bench.stdout == b"skill\ntext\n"
        finally:
            shutil.rmtree(project)

    def test_further_folders_can_be_writable(self, bench, tmp_path):
        (tmp_path / "shared").mkdir()
        sharing = detect("auto").plan(writable=[tmp_path / "shared"])
        assert bench.sh(f"echo 1 > {tmp_path}/shared/file", sandbox=sharing).exit_status == 0
        assert (tmp_path / "shared" / "file").exists()

    def test_tmp_is_private_and_writable(self, bench, plan):
        name = f"/tmp/skilleval-private-{os.getpid()}"
        assert bench.sh(f"echo 1 > {name}; cat {name}", sandbox=plan).exit_status == 0
        assert not Path(name).exists()

    def test_the_network_is_kept(self, bench, plan):
        with socket.create_server(("127.0.0.1", 0)) as server:
            script = f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 5); print('connected')"
            bench.run(sys.executable, "-I", "-S", "-c", script, sandbox=plan)
        assert bench.stdout == b"connected\n"

    def test_no_capability_is_left(self, bench, plan):
        bench.sh("grep CapEff /proc/self/status", sandbox=plan)
        assert bench.stdout.split() == [b"CapEff:", b"0000000000000000"]

    def test_a_missing_program_is_no_failure_of_the_agent(self, bench, plan):
        ended = bench.run("no-such-agent", sandbox=plan)
        assert (ended.reason, ended.exit_status) == ("spawn_failed", None)
        assert "bubblewrap could not start the command" in ended.message
        assert b"no-such-agent" in bench.stderr

    def test_the_wall_asks_the_agent_and_not_the_sandbox(self, bench, plan):
        ended = bench.sh("trap 'echo last words; exit 5' INT; echo on; sleep 60 & wait", timeout=1.0, sandbox=plan)
        assert (ended.reason, ended.exit_status, ended.tree) == ("timeout", 5, "dead")
        assert bench.stdout == b"on\nlast words\n"
        assert bench.alive() == []

    def test_b29_what_will_not_listen_is_killed(self, bench, plan):
        ended = bench.sh(
            "trap '' INT TERM; setsid sleep 60 & (setsid nohup sleep 60 >/dev/null 2>&1 &); while :; do sleep 0.1; done",
            timeout=0.6,
            sandbox=plan,
        )
        assert (ended.reason, ended.tree) == ("timeout", "dead")
        assert ended.killed >= 4
        assert bench.alive() == []

    def test_daemons_die_with_a_normal_end(self, bench, plan):
        ended = bench.sh("(setsid nohup sleep 60 >/dev/null 2>&1 &); echo done", sandbox=plan)
        assert (ended.reason, ended.exit_status, ended.tree) == ("exited", 0, "dead")
        assert bench.alive() == []

    def test_it_dies_with_its_supervisor(self, bench, plan):
        with bench.lease() as lease:

            def tick():
                if (bench.home / "ready").exists():
                    os.kill(lease.supervisor, signal.SIGKILL)

            command = bench.command("/bin/sh", "-c", "setsid sleep 60 & echo 1 > ready; sleep 60", sandbox=plan)
            assert lease.run(command, tick).reason == "cancelled"
        assert bench.dies()

    def test_a_secret_is_in_no_command_line(self, bench, plan):
        secret = "sk-test-AAAA0123456789"
        seen = []
        with bench.lease() as lease:

            def tick():
                listing = subprocess.run(
                    ["ps", "axww", "-o", "args"], capture_output=True, text=True, check=True
                ).stdout
                seen.append(secret in listing)

            command = bench.command(
                "/bin/sh",
                "-c",
                "sleep 0.6; echo $KEY",
                env=bench.env | {"KEY": secret},
                secrets=(secret,),
                sandbox=plan,
            )
            lease.run(command, tick)
        assert seen
        assert not any(seen)
        assert bench.stdout == b"[redacted]\n"
