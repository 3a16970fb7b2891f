"""Checks of files: file and snapshot."""

from __future__ import annotations

import os
from typing import Any

import pytest

from pytest_skilleval.errors import ErrorClass
from pytest_skilleval.records import CheckResult
from pytest_skilleval.scoring.verifiers import Verified, verify_all

from .trials import MakeFacts


def verified(make_facts: MakeFacts, check: dict[str, Any], **more: Any) -> Verified:
    facts = make_facts(checks=[{"id": "it", **check}], **more)
    return verify_all(facts.case.spec.checks, facts)


def answer(make_facts: MakeFacts, check: dict[str, Any], **more: Any) -> CheckResult:
    outcome = verified(make_facts, check, **more)
    assert outcome.faults == ()
    (result,) = outcome.results
    return result


FILES = {"out.txt": "improved\n", "sub/b.log": "b", "sub/a.log": "a", "dos.txt": b"one\r\ntwo\r\n"}


@pytest.mark.parametrize(
    ("check", "holds", "reason"),
    [
        ({"path": "out.txt"}, True, "out.txt is as wanted"),
        ({"path": "absent.txt"}, False, "absent.txt is not there"),
        ({"path": "absent.txt", "exists": False}, True, "it is absent"),
        ({"path": "out.txt", "exists": False}, False, "out.txt is there, and must not be"),
        ({"path": "*.txt", "exists": False}, False, "dos.txt is there, and must not be"),
        ({"path": "out.txt", "equals": "improved"}, True, "as wanted"),
        ({"path": "out.txt", "equals": "regressed"}, False, "out.txt is 'improved', wanted 'regressed'"),
        ({"path": "out.txt", "contains": "prov"}, True, "as wanted"),
        ({"path": "out.txt", "contains": "worse"}, False, "does not contain 'worse'"),
        ({"path": "out.txt", "matches": "^(improved|regressed)$"}, True, "as wanted"),
        ({"path": "out.txt", "matches": "^impr$"}, False, "does not match '^impr$'"),
        ({"path": "out.txt", "never": "regress"}, True, "as wanted"),
        ({"path": "out.txt", "never": "(?i)IMPROVED"}, False, "must not match '(?i)IMPROVED', and does: 'improved'"),
        ({"path": "dos.txt", "matches": "^one$"}, True, "as wanted"),
        ({"path": "sub/*.log", "equals": "a"}, True, "sub/a.log is as wanted"),
        ({"path": "sub/*.log", "equals": "b"}, False, "sub/a.log is 'a', wanted 'b'"),
        ({"path": "**/b.log"}, True, "sub/b.log is as wanted"),
        ({"path": "sub"}, False, "sub is a folder, not a file"),
        ({"path": "../out.txt"}, False, "leaves its folder"),
        ({"path": "/etc/passwd"}, False, "leaves its folder"),
    ],
)
def test_a_file_is_looked_at(make_facts: MakeFacts, check: dict[str, Any], holds: bool, reason: str) -> None:
    result = answer(make_facts, {"kind": "file", **check}, files=FILES)
    assert (result.passed, result.error) == (holds, False)
    assert reason in result.reason


def test_changed_and_unchanged_are_told_by_digest(make_facts: MakeFacts) -> None:
    given = {"kept.txt": "old", "edited.txt": "old"}
    files = {"kept.txt": "old", "edited.txt": "new", "made.txt": "new"}

    def changed(path: str, wanted: bool) -> CheckResult:
        return answer(make_facts, {"kind": "file", "path": path, "changed": wanted}, files=files, before=given)

    assert changed("edited.txt", True).passed
    assert changed("made.txt", True).passed
    assert changed("kept.txt", True).reason == "kept.txt is still what the agent was given"
    assert changed("kept.txt", False).passed
    assert changed("edited.txt", False).reason == "edited.txt was changed, and must not be"
    assert "was not there when the agent started" in changed("made.txt", False).reason


def test_links_are_followed_inside_the_workspace_and_never_out_of_it(make_facts: MakeFacts) -> None:
    facts = make_facts(files={"real.txt": "improved"})
    secret = facts.workspace.parent / "secret.txt"
    secret.write_text("improved")
    (facts.workspace / "inside.txt").symlink_to("real.txt")
    (facts.workspace / "outside.txt").symlink_to(secret)
    (facts.workspace / "upwards").symlink_to("..")
    (facts.workspace / "loop").symlink_to("loop")
    (facts.workspace / "dangling").symlink_to("nowhere")

    def look(path: str) -> CheckResult:
        return answer(make_facts, {"kind": "file", "path": path, "contains": "improved"})

    assert look("inside.txt").passed
    for path in ("outside.txt", "upwards/secret.txt", "upwards/*.txt", "loop", "dangling"):
        result = look(path)
        assert result.passed is False, path
        assert "improved" not in result.reason
    assert "link that leaves its folder" in look("outside.txt").reason


def test_a_pipe_is_refused_and_does_not_hold_the_trial(make_facts: MakeFacts) -> None:
    facts = make_facts()
    os.mkfifo(facts.workspace / "pipe")
    result = answer(make_facts, {"kind": "file", "path": "pipe", "contains": "x"})
    assert result.reason == "pipe is a pipe, not a file"


def test_a_device_is_refused(make_facts: MakeFacts) -> None:
    facts = make_facts()
    try:
        os.mknod(facts.workspace / "zero", 0o666 | 0o020000, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("only root makes devices")
    assert answer(make_facts, {"kind": "file", "path": "zero"}).reason == "zero is a device, not a file"


def test_a_file_that_is_too_large_is_refused_unread(make_facts: MakeFacts) -> None:
    facts = make_facts()
    with (facts.workspace / "huge.txt").open("wb") as file:
        file.truncate(10 * 1024**3)
    result = answer(make_facts, {"kind": "file", "path": "huge.txt", "contains": "x"})
    assert result.passed is False
    assert "huge.txt has 10737418240 bytes" in result.reason


def test_that_a_text_was_too_long_to_be_matched_whole_is_said(make_facts: MakeFacts) -> None:
    files = {"long.log": "begin\n" + "x" * 1_000_000 + "\nend\n"}
    found = answer(make_facts, {"kind": "file", "path": "long.log", "matches": "^begin$"}, files=files)
    assert (found.passed, found.reason) == (
        True,
        "long.log is as wanted (only its first 1000000 characters were matched)",
    )
    missed = answer(make_facts, {"kind": "file", "path": "long.log", "matches": "^end$"})
    assert missed.passed is False
    assert "(only its first 1000000 characters were matched)" in missed.reason


def test_the_workspaces_own_git_folder_is_not_searched_unless_named(make_facts: MakeFacts) -> None:
    files = {".git/description.txt": "x"}
    assert answer(make_facts, {"kind": "file", "path": "**/*.txt"}, files=files).passed is False
    assert answer(make_facts, {"kind": "file", "path": ".git/*.txt"}, files=files).passed is True


def test_the_prompt_and_the_runners_own_files_satisfy_no_check(make_facts: MakeFacts) -> None:
    facts = make_facts(prompt="Write improved into verdict.txt", answer="improved", files={"notes.txt": "x"})
    (facts.workspace.parent / "stdout").write_text("improved")
    result = answer(make_facts, {"kind": "file", "path": "**/*", "contains": "improved"})
    assert result.passed is False


def test_a_pattern_that_takes_too_long_is_an_error_and_the_next_check_is_answered(make_facts: MakeFacts) -> None:
    facts = make_facts(
        files={"a.txt": "a" * 40 + "b"},
        checks=[
            {"id": "slow", "kind": "file", "path": "a.txt", "matches": "(a|aa)+$"},
            {"id": "quick", "kind": "file", "path": "a.txt", "matches": "b$"},
        ],
    )
    outcome = verify_all(facts.case.spec.checks, facts)
    assert [(result.passed, result.error) for result in outcome.results] == [(None, True), (True, False)]
    assert [fault.error_class for fault in outcome.faults] == [ErrorClass.CHECK]
    assert outcome.faults[0].message.startswith("check slow: pattern '(a|aa)+$' took longer than")


def test_a_change_that_cannot_be_told_is_an_error_of_the_check(make_facts: MakeFacts) -> None:
    from dataclasses import replace

    facts = make_facts(files={"a.txt": "x"}, checks=[{"id": "it", "kind": "file", "path": "a.txt", "changed": True}])
    outcome = verify_all(facts.case.spec.checks, replace(facts, before=None))
    assert outcome.results[0].error
    assert "not known" in outcome.faults[0].message


def test_a_snapshot_is_read_without_its_colours(make_facts: MakeFacts) -> None:
    screen = "\x1b[2J\x1b[1;32mPASSED\x1b[0m 5 of 5\r\n\x1b]0;title\x07$ "
    check = {"kind": "snapshot", "path": "screen.txt"}
    files = {"screen.txt": screen, "blank.txt": "\x1b[2J  \r\n"}
    assert answer(make_facts, {**check, "matches": "^PASSED 5 of 5$"}, files=files).passed
    assert answer(make_facts, {**check, "never": "title"}, files=files).passed
    assert "does not match 'FAILED'" in answer(make_facts, {**check, "matches": "FAILED"}, files=files).reason
    assert answer(make_facts, {**check, "path": "blank.txt"}, files=files).reason == "blank.txt is an empty screen"
    assert answer(make_facts, {**check, "path": "none.txt"}, files=files).reason == "none.txt is not there"
