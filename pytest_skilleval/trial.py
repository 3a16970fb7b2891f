"""One trial from start to record: the only path there is.

1. The intent is written.
2. A workspace is made, and the skill installed as the condition says.
3. The provider's command runs under a supervisor that owns its process tree; the tree is proven dead.
4. What is left is scored.
5. The record is written, before the test function returns.
6. The home is removed, in every ending that Python sees; the supervisor does it in the others.
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_skilleval import evidence, kept, lanes
from pytest_skilleval.caps import resources_of
from pytest_skilleval.errors import ErrorClass, TrialFault
from pytest_skilleval.judge import ask_judge
from pytest_skilleval.model import Case, Condition, TrialId
from pytest_skilleval.providers.base import Answer, ProcessOutput
from pytest_skilleval.providers.classes import Policy, policy
from pytest_skilleval.records import ArtifactRef, Intent, Outcome, Transcript, TrialError, TrialRecord
from pytest_skilleval.redaction import Redactor, redact_named
from pytest_skilleval.scoring.facts import Facts
from pytest_skilleval.settlement import Course, settle
from pytest_skilleval.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_skilleval.workbench import Workbench
    from pytest_skilleval.workspace.home import Home

__all__ = ["Run", "Trial", "TrialErrored"]


class TrialErrored(Exception):
    """The trial could not be measured."""


@dataclass(frozen=True)
class Run:
    """What a Python case sees of its agent's run."""

    workspace: Path
    transcript: Transcript
    error: TrialError | None

    @property
    def final_text(self) -> str:
        """The agent's answer."""
        return self.transcript.final_text

    def used_skill(self, name: str) -> bool:
        """Tell whether the agent loaded a skill, by evidence and not by mention."""
        return any(use.name == name for use in self.transcript.skills_used)

    def ran(self, pattern: str) -> bool:
        """Tell whether a command that the agent ran matches a regular expression."""
        from pytest_skilleval.scoring.patterns import search  # noqa: PLC0415 - only Python cases ask

        return any(search(pattern, call.command) is not None for call in self.transcript.tool_calls)


class Trial:
    """One trial: the `skilleval` fixture.

    Args:
        bench: What all trials of this process share.
        case: What is asked.
        condition: What the agent can know.
        number: 1-based.
    """

    def __init__(self, bench: Workbench, case: Case, condition: Condition, number: int) -> None:
        self.bench = bench
        self.case = case
        self.condition = condition
        self.trial = number
        self.id = TrialId(case.lane.value, case.id, condition.name, number)
        self.record: TrialRecord | None = None
        self._course = Course(attempt=bench.journal.attempts(self.id) + 1, rules=bench.rules)
        self._stage: Stage | None = None
        self._asked = False
        self._kept = False
        self._redactor = Redactor(tuple(bench.provider.credentials().values()))
        intent = Intent(
            run=bench.run,
            lane=self.id.lane,
            case=self.id.case,
            condition=self.id.condition,
            trial=number,
            fingerprint=case.fingerprint,
            attempt=self._course.attempt,
            started=self._course.started,
            worker=bench.worker,
            pid=os.getpid(),
            session=bench.token,
        )
        try:
            self._folder = bench.journal.write_intent(intent)
            if intent.attempt > 1:
                self._forget()
        except OSError as error:
            path = bench.journal.folder(self.id) / "intent.json"
            message = f"{self.id.key}: could not record its start: {path}: {error.strerror or error}"
            raise TrialErrored(message) from None

    def _forget(self) -> None:
        """Remove what an earlier attempt left: where this one leaves nothing, it would be shown as this one's."""
        evidence.drop_evidence(self._folder)
        kept.drop_workspace(self._folder)
        shutil.rmtree(self.bench.bundle_folder(self.id), ignore_errors=True)

    # --------------------------------------------------------------------------------------- for case authors

    @property
    def place(self) -> Home:
        """The trial's folders and environment."""
        return self._on_stage().home

    @property
    def home(self) -> Path:
        """The agent's HOME."""
        return self.place.home

    @property
    def workspace(self) -> Path:
        """The agent's working directory."""
        return self.place.work

    def run(
        self,
        prompt: str | None = None,
        *,
        template: str | Path | None = None,
        files: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Run:
        """Ask the agent and return what it did; a trial asks once.

        Args:
            prompt: What to ask; the case's own by default.
            template: A folder, relative to the case's file, copied into the workspace first.
            files: Path to text, written after the template.
            timeout: Seconds; the case's budget by default.

        Raises:
            TrialFault: The question could not be measured.
            RuntimeError: It was asked before.
        """
        if self._asked:
            raise RuntimeError("skilleval.run() was called twice: one trial asks once, so that trials stay independent")
        self._asked = True
        self.case = _with(self.case, prompt=prompt, template=template, files=files, timeout=timeout)
        with self.bench.slots.held(resources_of(self.id.lane, self.bench.info.id)) as waited:
            self._course.waited += waited
            error = self._ask_until_answered()
        if self.bench.settings.keep != "none":
            stage = self._on_stage()
            notes = kept.keep_workspace(stage.workspace, stage.before, self._folder, self._redactor.bytes)
            self._course.notes += notes
            self._kept = True
        if error is not None and self._rule(error).outcome == "error" and not self._timed_out(error):
            raise TrialFault(error.error_class, error.message)
        return Run(self.workspace, self._course.answer.transcript, error)

    def score(self, name: str, value: float) -> None:
        """Add a component to the score of a Python case.

        Args:
            name: What is scored.
            value: From 0 to 1.

        Raises:
            ValueError: The value is out of range.
        """
        if not 0 <= value <= 1:
            raise ValueError(f"score {name!r}: {value} is not between 0 and 1")
        self._course.scores[name] = float(value)

    def run_case(self) -> None:
        """Run a data case and grade it; the outcome is settled afterwards."""
        try:
            self.run()
            self._course.marks = lanes.grade(self._facts())
        except TrialFault as fault:
            self._course.fault = TrialError(error_class=fault.error_class, message=fault.message)

    # ------------------------------------------------------------------------------------------------ the steps

    def _on_stage(self, attempt: int = 1) -> Stage:
        if self._stage is None:
            self._stage = Stage(self.bench, self.id, self.case, self.condition, attempt)
        return self._stage

    def _ask_until_answered(self) -> TrialError | None:
        """Ask, and ask again in a fresh place where the error table says so; the last answer counts."""
        draw = random.Random(f"{self.bench.settings.seed}:{self.id.key}:retry")  # noqa: S311 - jitter
        retries = 0
        while True:
            if (left := self.bench.pauses.left()) > 0:
                self._wait(left + draw.uniform(0.0, 1.0))  # so that not all come back at once
            error = self._ask(attempt=retries + 1)
            self._heed(error)
            again = error is not None and self._rule(error).retry
            wait = self.bench.retry.wait(retries, error, draw) if error is not None and again else None
            if error is None or wait is None:
                return error
            retries += 1
            self._course.attempts.append(f"attempt {retries}: {error.error_class.value}: {error.message}")
            self._course.earlier.append(self._course.answer.transcript)
            self._leave_stage()
            self._wait(wait, error.error_class.value)

    def _wait(self, seconds: float, reason: str = ErrorClass.RATE_LIMIT.value) -> None:
        if seconds > 0:
            self._course.waited += seconds
            self.bench.pauses.wait(seconds, f"the provider ({reason})")

    def _heed(self, error: TrialError | None) -> None:
        """Count a rate limit, and let the other trials wait as long as the provider asks for."""
        if error is not None and error.error_class is ErrorClass.RATE_LIMIT:
            self._course.rate_limited += 1
            self.bench.pauses.ask(error.retry_after or 0.0)

    def _ask(self, attempt: int) -> TrialError | None:
        stage = self._on_stage(attempt)
        stage.case = self.case
        stage.prepare()
        course, provider = self._course, self.bench.provider
        course.exposure = stage.exposure
        ask = stage.question()
        launch = provider.prepare(ask)
        output: ProcessOutput | None = None
        if launch is not None:
            self._redactor = Redactor((*provider.credentials().values(), *launch.secrets))
            course.agent_started = time.time()
            ended = course.ended = stage.launch(ask, launch, self._folder)
            output = ProcessOutput(
                stdout=self._folder / "stdout",
                stderr=self._folder / "stderr",
                exit_status=ended.exit_status,
                reason=ended.reason,
                message=ended.message,
                duration_s=ended.duration,
                signal=ended.signal,
            )
        stage.look()
        course.answer = Answer(*provider.read(ask, output))
        transcript = course.answer.transcript
        path = self._folder / "transcript.jsonl"
        evidence.write_transcript(path, ask.prompt, ask.system, transcript, self._plain)
        self._audit(transcript)
        return course.answer.error

    def _audit(self, transcript: Transcript) -> None:
        """Refuse to measure an agent that saw what its condition forbids."""
        course, skill = self._course, self.case.skill
        course.exposure = course.exposure.model_copy(update={"listed": transcript.skills_visible})
        if skill is None:
            return
        current = self.bench.skills.get(skill)
        if self.condition.installs == "stale" and current is not None and course.exposure.digest == current.digest:
            raise TrialFault(ErrorClass.CONTAMINATED, f"the stale version of skill {skill!r} is the current one")
        used = any(use.name == skill for use in transcript.skills_used)
        listed = skill in (transcript.skills_visible or ())
        if self.condition.installs == "nothing" and not self.condition.preloads and (used or listed):
            word = "used" if used else "was offered"
            raise TrialFault(
                ErrorClass.CONTAMINATED,
                f"the agent {word} skill {skill!r} although condition {self.condition.name!r} hides it: "
                "it was found outside the trial's home",
            )

    def _rule(self, error: TrialError) -> Policy:
        return policy(error.error_class, self.bench.rules)

    def _timed_out(self, error: TrialError) -> bool:
        return error.error_class is ErrorClass.TIMEOUT

    def _facts(self) -> Facts:
        stage = self._on_stage()
        return Facts(
            case=self.case,
            condition=self.condition,
            transcript=self._course.answer.transcript,
            error=self._course.answer.error,
            workspace=stage.workspace,
            before=stage.before,
            run_command=lambda argv, timeout: stage.command(argv, timeout, "check"),
            python=sys.executable,
            bundle=self._collect_bundle(stage.workspace),
            judge=None if self.bench.judge is None else functools.partial(ask_judge, self.bench, self.id, self._plain),
        )

    def _collect_bundle(self, workspace: Path) -> Path | None:
        bundle = self.case.spec.bundle
        if bundle is None:
            return None
        source = workspace / bundle.path
        if not source.is_dir() or source.is_symlink():
            return None
        target = self.bench.bundle_folder(self.id)
        return lanes.collect_bundle(source, target, title=self.id.key, redact=self._redactor.bytes)

    # ---------------------------------------------------------------------------------------------- the ending

    def settle(self, exception: BaseException | None) -> TrialRecord:
        """Write the record, once: on return it is on disk, or the trial is an error that says why it is not.

        Args:
            exception: What the test function raised, or None.
        """
        try:
            self._gather()
        except Exception as broken:  # noqa: BLE001 - evidence that cannot be kept makes an error, not a lost trial
            exception = exception or broken
        if exception is None and self.case.python and not self._asked:
            self._course.fault = TrialError(
                error_class=ErrorClass.CHECK, message="skilleval.run() was never called: nothing was measured"
            )
        record = settle(
            self._course, self.bench, self.case, self.condition, self.id, exception=exception, clean=self._clean
        )
        if record.outcome is Outcome.PASSED and self.bench.settings.keep == "failed":
            kept.drop_workspace(self._folder)  # before the record: a worker killed in between leaves nothing behind
        self.record = self._write(record)
        error = self.record.error
        if error is not None and self._rule(error).stops_provider and self.bench.provider.paid:
            self.bench.halts.halt(error)
        self.bench.halts.told(self.record)
        return self.record

    def leave_out(self, outcome: Outcome, reason: str) -> TrialRecord:
        """Write the record of a trial that is not to start."""
        record = settle(self._course, self.bench, self.case, self.condition, self.id, exception=None, clean=self._clean)
        left = record.model_copy(update={"outcome": outcome, "reason": reason, "score": None, "checks": ()})
        self.record = self._write(left)
        return self.record

    def _write(self, record: TrialRecord) -> TrialRecord:
        """Put the record on disk and return it; where it cannot be written the trial never counts as passed."""
        journal = self.bench.journal
        try:
            journal.write_record(record)
        except OSError as error:
            path = journal.folder(self.id) / "record.json"
            message = f"could not record: {path}: {error.strerror or error}"
            fault = TrialError(error_class=ErrorClass.RECORD, message=message)
            record = record.model_copy(
                update={"outcome": Outcome.ERROR, "reason": message, "error": fault, "score": None, "checks": ()}
            )
            with contextlib.suppress(OSError):
                journal.write_record(record)  # it is smaller, and the fault may have passed
        return record

    def _gather(self) -> None:
        course, stage = self._course, self._stage
        course.left_something = stage is not None and self._asked and stage.changed()
        cut = {name: getattr(course.ended, name).truncated for name in ("stdout", "stderr")} if course.ended else {}
        course.files = evidence.keep_files(self._folder, self.bench.folder, cut)
        if stage is not None:
            course.artifacts = self._keep_artifacts(stage)

    def _keep_artifacts(self, stage: Stage) -> tuple[ArtifactRef, ...]:
        run_folder, bundle = self.bench.folder, self.bench.bundle_folder(self.id)
        found = evidence.keep_artifacts(
            self.case, stage.workspace, stage.before, self._folder, run_folder, redact=self._redactor.bytes
        )
        if self.case.spec.bundle is not None and (bundle / "manifest.json").is_file():
            found += evidence.bundle_artifacts(bundle, run_folder)
        return found

    def _clean(self, text: str) -> str:
        return redact_named(self._plain(text))

    def _plain(self, text: str) -> str:
        """Take out the secrets, and where the home lay: equal trials then leave equal text."""
        text = self._redactor.text(text)
        return text if self._stage is None else text.replace(str(self._stage.home.root), "/trial")

    def close(self) -> None:
        """Keep what is to be kept, and remove the home with everything that still runs in it."""
        try:
            if self._stage is not None and self._asked:
                self._keep(self._stage)
        finally:
            self._leave_stage()

    def _leave_stage(self) -> None:
        if self._stage is not None:
            self._stage.close()
            self._stage = None

    def _keep(self, stage: Stage) -> None:
        changes = stage.changes()
        if changes:
            (self._folder / "workspace.diff").write_bytes(self._plain(changes).encode("utf-8", "replace"))
        keep = self.bench.settings.keep
        bad = self.record is None or self.record.outcome is not Outcome.PASSED
        if not self._kept and (keep == "all" or (keep == "failed" and bad)):
            # Its agent came to no answer: it can be looked at, and not be graded again.
            kept.copy_workspace(stage.workspace, self._folder, self._redactor.bytes)


def _with(
    case: Case,
    *,
    prompt: str | None,
    template: str | Path | None,
    files: Mapping[str, str] | None,
    timeout: float | None,
) -> Case:
    """Return a case with what its test function asks for."""
    workspace: dict[str, Any] = {} if template is None else {"template": str(template)}
    if files:
        workspace["files"] = dict(files)
    changes: dict[str, Any] = {"workspace": case.spec.workspace.model_copy(update=workspace)} if workspace else {}
    if prompt is not None:
        changes["prompt"] = prompt
    if timeout is not None:
        changes["budget"] = case.spec.budget.model_copy(update={"timeout": timeout})
    return case.model_copy(update={"spec": case.spec.model_copy(update=changes)}) if changes else case
