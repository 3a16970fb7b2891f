"""Recording and replay: the same question gives the same answer and the same files, any other question gives none."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest

from pytest_skilleval.errors import ErrorClass, OptionMistake, TrialFault
from pytest_skilleval.providers import make_provider
from pytest_skilleval.providers.base import Answer, ProviderSettings
from pytest_skilleval.providers.recording import apply_changes
from pytest_skilleval.providers.stub import Oracle
from pytest_skilleval.records import Transcript, TrialError

SOLUTION = 'echo hello > out.txt\nmkdir -p d && echo "$PWD" > d/here.txt && chmod +x d/here.txt\nrm old.txt\n'


@pytest.fixture
def question(ask):
    def make(condition="self-load", trial=1, **spec):
        asked = ask(condition, trial=trial, solution="solution.sh", answer="Done.", **spec)
        (asked.case.folder / "solution.sh").write_text(SOLUTION)
        for path in asked.workspace.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        (asked.workspace / "old.txt").write_text("old")
        (asked.workspace / "kept.txt").write_text("kept")
        return asked

    return make


@pytest.fixture
def recordings(tmp_path):
    return tmp_path / "recordings"


def recorder(recordings, extra=None, name="oracle"):
    return make_provider(name, ProviderSettings(record=recordings), extra or {})


def player(recordings, name="replay", **settings):
    return make_provider(name, ProviderSettings(replay=recordings, **settings), {})


@pytest.fixture
def record(run, recordings):
    def go(asked, provider=None):
        provider = provider or recorder(recordings)
        provider.detect()
        return provider.read(asked, run(asked, provider.prepare(asked)))

    return go


def test_a_replay_gives_the_recorded_answer_and_does_the_recorded_work(record, question, recordings):
    recorded_answer = record(question())
    asked = question()
    provider = player(recordings)
    assert provider.prepare(asked) is None
    assert provider.read(asked, None) == recorded_answer
    assert (asked.workspace / "out.txt").read_text() == "hello\n"
    assert (asked.workspace / "d" / "here.txt").stat().st_mode & 0o100
    assert not (asked.workspace / "old.txt").exists()
    assert (asked.workspace / "kept.txt").read_text() == "kept"
    assert provider.detect().info.id == "replay:oracle"


def test_a_replay_in_another_place_has_that_places_paths(record, question, recordings, tmp_path, run):
    asked = replace(question("preloaded"), system=f"The skill lies in {tmp_path}/preloaded-1/home/skill.")
    record(asked)
    elsewhere = question("preloaded")
    moved = tmp_path / "moved"
    shutil.copytree(elsewhere.home.parent, moved)
    there = replace(
        elsewhere,
        system=f"The skill lies in {moved}/home/skill.",
        **{name: moved / name for name in ("home", "workspace", "tmp", "scratch")},
    )
    assert player(recordings).read(there, None).transcript.finished


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda asked: replace(asked, prompt="Another prompt."), "prompt"),
        (lambda asked: replace(asked, system="More to know."), "prompt"),
        (
            lambda asked: replace(
                asked,
                skills=(asked.skills[0].model_copy(update={"digest": "1" * 64}), asked.skills[1]),
                under_test=None,
            ),
            "skills",
        ),
    ],
    ids=["prompt", "context", "skill"],
)
def test_an_edited_question_never_plays_an_old_answer_and_says_what_changed(record, question, recordings, change, part):
    record(question())
    with pytest.raises(TrialFault) as missed:
        player(recordings).prepare(change(question()))
    assert missed.value.error_class is ErrorClass.REPLAY
    assert f"its {part} changed since; record it again" in missed.value.message


def test_an_edited_workspace_never_plays_an_old_answer(record, question, recordings):
    record(question())
    asked = question()
    (asked.workspace / "kept.txt").write_text("edited")
    with pytest.raises(TrialFault, match="its workspace changed since"):
        player(recordings).prepare(asked)


@pytest.mark.parametrize(
    ("settings", "part"), [({"model": "m2"}, "model"), ({"effort": "high"}, "effort")], ids=["model", "effort"]
)
def test_another_model_or_effort_plays_nothing(record, question, recordings, settings, part):
    record(question())
    with pytest.raises(TrialFault, match=f"its {part} changed since"):
        player(recordings, **settings).prepare(question())


def test_trials_and_conditions_are_recorded_each_for_itself(record, question, recordings):
    record(question())
    for asked in (question(trial=2), question("none")):
        with pytest.raises(TrialFault, match=r"no recording of execution:greet:.* record it with --skilleval-record"):
            player(recordings).prepare(asked)


def test_recording_again_replaces_the_older_answer(record, question, recordings):
    record(question())
    second = replace(question(), case=question(stub={"sleep": 0.0}).case)
    second = replace(
        second, case=second.case.model_copy(update={"spec": second.case.spec.model_copy(update={"answer": "New."})})
    )
    record(second)
    assert player(recordings).read(question(), None).transcript.final_text == "New."


class Failing(Oracle):
    error_class = ErrorClass.RATE_LIMIT

    def read(self, ask, output):
        super().read(ask, output)
        return Answer(Transcript(), TrialError(error_class=self.error_class, message="x"))


class Refusing(Failing):
    error_class = ErrorClass.REFUSAL


def test_an_outage_is_not_recorded_and_a_refusal_is(record, question, recordings):
    record(question(), recorder(recordings, {"oracle": Failing}))
    assert not list(recordings.glob("*/*"))
    record(question(), recorder(recordings, {"oracle": Refusing}))
    assert player(recordings).read(question(), None).error.error_class is ErrorClass.REFUSAL


class Leaking(Oracle):
    def credentials(self):
        return {"KEY": "sk-0123456789-secret"}

    def prepare(self, ask):
        (ask.workspace / "leak.txt").write_text("found sk-0123456789-secret here")
        return super().prepare(ask)

    def read(self, ask, output):
        answer = super().read(ask, output)
        transcript = answer.transcript.model_copy(update={"final_text": "It is sk-0123456789-secret."})
        return answer._replace(transcript=transcript)


def test_no_secret_is_recorded_in_answers_or_files(record, question, recordings):
    record(question(), recorder(recordings, {"oracle": Leaking}))
    stored = b"".join(path.read_bytes() for path in recordings.rglob("*") if path.is_file())
    assert b"sk-0123456789-secret" not in stored
    assert b"[redacted]" in stored


def test_a_damaged_recording_is_an_error_that_says_so(record, question, recordings):
    record(question())
    (found,) = recordings.glob("*/*/recording.json")
    found.write_text(found.read_text()[:-40])
    with pytest.raises(TrialFault, match="is damaged; record it again"):
        player(recordings).prepare(question())


def test_a_recorded_file_that_was_changed_is_not_played(record, question, recordings):
    record(question())
    for blob in recordings.glob("*/*/*"):
        if blob.suffix != ".json":
            blob.write_bytes(b"other bytes")
    with pytest.raises(TrialFault, match="is damaged; record it again"):
        player(recordings).read(question(), None)


@pytest.mark.parametrize("name", ["../out", "/tmp/out", "link/out", ".git/hooks/post-checkout", "d/../../out"])
def test_a_recording_cannot_write_outside_the_workspace(record, question, recordings, name, tmp_path):
    record(question())
    (found,) = recordings.glob("*/*/recording.json")
    document = json.loads(found.read_text())
    document["written"] = {name: document["written"]["out.txt"]}
    found.write_text(json.dumps(document))
    asked = question()
    (tmp_path / "target").mkdir(exist_ok=True)
    provider = player(recordings)
    recording = provider._recording(asked)
    (asked.workspace / "link").symlink_to(tmp_path / "target")
    with pytest.raises(TrialFault, match="which leaves the workspace"):
        apply_changes(recordings, asked, recording)
    assert list((tmp_path / "target").iterdir()) == []


def test_a_link_that_the_agent_made_is_left_out_and_not_followed(record, question, recordings, ask, tmp_path):
    asked = question()
    (tmp_path / "private").write_text("private")
    (asked.case.folder / "solution.sh").write_text(f"ln -s {tmp_path}/private stolen.txt\n")
    record(asked)
    (found,) = recordings.glob("*/*/recording.json")
    document = json.loads(found.read_text())
    assert (document["written"], document["left_out"]) == ({}, ["stolen.txt"])


def test_a_folder_with_recordings_of_several_providers_needs_a_choice(record, question, recordings):
    record(question())
    record(question(stub={"solve_rate": 1.0}), recorder(recordings, name="stub"))
    with pytest.raises(OptionMistake, match="holds recordings of oracle, stub; choose one with --skilleval-provider"):
        player(recordings)
    assert player(recordings, name="oracle").provider == "oracle"


def test_an_empty_folder_and_a_missing_one_are_mistakes(tmp_path):
    with pytest.raises(OptionMistake, match="holds no recordings"):
        player(tmp_path / "none")
    with pytest.raises(OptionMistake, match="add --skilleval-replay DIR"):
        make_provider("replay", ProviderSettings(), {})
