"""One trial from start to record: the only path there is.

1. The intent is written.
2. A workspace is made, and the skill installed as the condition says.
3. The provider's command runs under a supervisor that owns its process tree; the tree is proven dead.
4. What is left is scored.
5. The record is written, before the test function returns.
6. The home is removed, in every ending that Python sees; the supervisor does it in the others.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_skilleval import evidence, lanes
from pytest_skilleval import skills as skill_folders
from pytest_skilleval.errors import ErrorClass, TrialFault, UserMistake
from pytest_skilleval.model import Case, Condition, TrialId
from pytest_skilleval.providers.base import Answer, Ask, Launch, ProcessOutput
from pytest_skilleval.providers.classes import policy
from pytest_skilleval.records import (
    CheckResult,
    Component,
    Exposure,
    FileRef,
    Intent,
    Isolation,
    Outcome,
    Score,
    SkillSeen,
    Transcript,
    TrialError,
    TrialRecord,
    TrialTiming,
)
from pytest_skilleval.redaction import Redactor, redact_named
from pytest_skilleval.scoring.facts import CommandResult, Facts
from pytest_skilleval.workspace.command import Command, Ended
from pytest_skilleval.workspace.home import Home, home_root, make_home

if TYPE_CHECKING:
    from pytest_skilleval.workbench import Workbench
    from pytest_skilleval.workspace.spawn import TrialLease

__all__ = ["Run", "Trial", "TrialErrored", "TrialFailed"]

_ANSWER_CHARS = 20_000
_CHECK_BYTES = 1_000_000


class TrialFailed(AssertionError):
    """The agent did badly: what a data case's test raises, so that every tool shows it as failed."""


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


@dataclass
class _State:
    """What a trial has gathered so far."""

    answer: Answer = field(default_factory=lambda: Answer(Transcript()))
    ended: Ended | None = None
    marks: lanes.Marks | None = None
    before: dict[str, str] = field(default_factory=dict)
    given: dict[str, bytes] = field(default_factory=dict)
    exposure: Exposure = field(default_factory=Exposure)
    scores: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    attempts: list[str] = field(default_factory=list)
    fault: TrialError | None = None
    asked: bool = False


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
        self._state = _State()
        self._home: Home | None = None
        self._lease: TrialLease | None = None
        self._stack = ExitStack()
        self._redactor = Redactor(tuple(bench.provider.credentials().values()))
        self._started = time.time()
        self._clock = time.monotonic()
        self._folder = bench.journal.write_intent(
            Intent(
                run=bench.run,
                lane=self.id.lane,
                case=self.id.case,
                condition=self.id.condition,
                trial=number,
                fingerprint=case.fingerprint,
                started=self._started,
                worker=bench.worker,
                pid=os.getpid(),
            )
        )

    # --------------------------------------------------------------------------------------- for case authors

    @property
    def place(self) -> Home:
        """The trial's folders and environment."""
        return self._place()

    @property
    def home(self) -> Path:
        """The agent's HOME."""
        return self._place().home

    @property
    def workspace(self) -> Path:
        """The agent's working directory."""
        return self._place().work

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
        if self._state.asked:
            raise RuntimeError("skilleval.run() was called twice: one trial asks once, so that trials stay independent")
        self._state.asked = True
        if prompt is not None or template is not None or files or timeout is not None:
            self.case = _with(self.case, prompt=prompt, template=template, files=files, timeout=timeout)
        self._prepare()
        self._ask()
        error = self._state.answer.error
        if error is not None and policy(error.error_class).outcome == "error":
            raise TrialFault(error.error_class, error.message)
        return Run(self.workspace, self._state.answer.transcript, error)

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
        self._state.scores[name] = float(value)

    def run_case(self) -> None:
        """Run a data case and grade it; the outcome is settled afterwards."""
        try:
            self.run()
        except TrialFault as fault:
            self._state.fault = TrialError(error_class=fault.error_class, message=fault.message)
            return
        self._state.marks = lanes.grade(self._facts())

    # ------------------------------------------------------------------------------------------------ the steps

    def _place(self) -> Home:
        if self._home is None:
            bench = self.bench
            # The lease comes first: from here on the home is removed even if this process is killed.
            self._lease = self._stack.enter_context(
                bench.spawner.lease(home_root(bench.base, bench.run, self.id.folder), bench.base)
            )
            self._home = make_home(bench.base, bench.run, self.id.folder, bench.environ)
        return self._home

    def _prepare(self) -> None:
        place = self._place()
        spec = self.case.spec.workspace
        self._install()
        try:
            if spec.template is not None:
                evidence.keep_tree(self.case.folder / spec.template, place.work)
            for name, text in spec.files.items():
                target = place.work / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8")
        except OSError as error:
            raise TrialFault(ErrorClass.SETUP, f"workspace: {error.strerror or error}: {error.filename}") from None
        place.install_git()
        for step in spec.setup:
            done = self._command(step.run, step.timeout, "setup")
            if done.exit_status != 0:
                said = (done.stderr or done.stdout).strip().splitlines()
                raise TrialFault(
                    ErrorClass.SETUP,
                    f"setup command {step.run[0]!r} ended with {_status(done)}: {said[-1] if said else 'no output'}",
                )
        self._state.before = evidence.snapshot(place.work)
        self._state.given = evidence.small_files(place.work, self._state.before)

    def _install(self) -> None:
        place, condition = self._place(), self.condition
        root = self.bench.provider.skill_root(place.home)
        seen: list[SkillSeen] = []
        for skill in self.bench.visible(self.case, condition):
            stale = condition.installs == "stale" and skill.name == self.case.skill
            if condition.installs != "nothing" and root is not None:
                root.mkdir(parents=True, exist_ok=True)
                skill_folders.install(skill, root)
                seen.append(SkillSeen(name=skill.name, digest=skill.digest, stale=stale))
            elif condition.preloads:
                seen.append(SkillSeen(name=skill.name, digest=skill.digest, preloaded=True, stale=stale))
        own = next((skill.digest for skill in seen if skill.name == self.case.skill), None)
        self._state.exposure = Exposure(skills=tuple(seen), digest=own)

    def _question(self) -> Ask:
        place, condition, case = self._place(), self.condition, self.case
        visible = self.bench.visible(case, condition)
        parts = [case.spec.context] if case.spec.context else []
        if condition.preloads:
            # Preloaded skills lie where no agent discovers them, so that their scripts can be reached by path alone.
            shelf = place.home / "skill"
            shelf.mkdir(exist_ok=True)
            parts += [skill_folders.preload_text(skill, skill_folders.install(skill, shelf)) for skill in visible]
        installed = visible if condition.installs != "nothing" else ()
        return Ask(
            id=self.id,
            case=case,
            kind=case.lane.kind,
            condition=condition,
            prompt=lanes.ask_text(case, condition),
            system="\n\n".join(parts),
            skills=installed,
            under_test=next((skill for skill in visible if skill.name == case.skill), None),
            home=place.home,
            workspace=place.work,
            tmp=place.tmp,
            scratch=place.scratch,
            env={**place.env, **case.spec.workspace.env},
            budget=case.spec.budget,
        )

    def _ask(self) -> None:
        ask = self._question()
        provider, state = self.bench.provider, self._state
        launch = provider.prepare(ask)
        output: ProcessOutput | None = None
        if launch is not None:
            state.ended = self._launch(ask, launch)
            output = ProcessOutput(
                stdout=self._folder / "stdout",
                stderr=self._folder / "stderr",
                exit_status=state.ended.exit_status,
                reason=state.ended.reason,
                message=state.ended.message,
                duration_s=state.ended.duration,
            )
        state.answer = provider.read(ask, output)
        evidence.write_transcript(
            self._folder / "transcript.jsonl", ask.prompt, ask.system, state.answer.transcript, self._clean
        )
        self._audit()

    def _launch(self, ask: Ask, launch: Launch) -> Ended:
        assert self._lease is not None  # noqa: S101 - made with the place
        self._redactor = Redactor(launch.secrets)
        return self._lease.run(
            Command(
                argv=launch.argv,
                cwd=ask.workspace,
                env={**ask.env, **launch.env},
                stdin=launch.stdin,
                stdout=self._folder / "stdout",
                stderr=self._folder / "stderr",
                timeout=ask.budget.timeout,
                secrets=launch.secrets,
                result_markers=launch.result_markers,
                sandbox=self._sandbox_plan(launch.reads),
            )
        )

    def _sandbox_plan(self, reads: Sequence[Path]) -> Any:
        return self.bench.sandbox_plan(self._place(), tuple(reads))

    def _audit(self) -> None:
        """Refuse to measure an agent that saw what its condition forbids."""
        state, skill = self._state, self.case.skill
        transcript = state.answer.transcript
        state.exposure = state.exposure.model_copy(update={"listed": transcript.skills_visible})
        if skill is None:
            return
        used = any(use.name == skill for use in transcript.skills_used)
        listed = skill in (transcript.skills_visible or ())
        hidden = self.condition.installs == "nothing"
        if hidden and not self.condition.preloads and (used or listed):
            word = "used" if used else "was offered"
            raise TrialFault(
                ErrorClass.CONTAMINATED,
                f"the agent {word} skill {skill!r} although condition {self.condition.name!r} hides it: "
                "it was found outside the trial's home",
            )

    # ---------------------------------------------------------------------------------------------- the checks

    def _facts(self) -> Facts:
        return Facts(
            case=self.case,
            condition=self.condition,
            transcript=self._state.answer.transcript,
            error=self._state.answer.error,
            workspace=self.workspace,
            before=self._state.before,
            run_command=lambda argv, timeout: self._command(argv, timeout, "check"),
            python=sys.executable,
            bundle=self._collect_bundle(),
            selected=None,
        )

    def _collect_bundle(self) -> Path | None:
        if self.case.spec.bundle is None:
            return None
        target = self.bench.bundle_folder(self.id)
        source = self.workspace / self.case.spec.bundle.path
        if not source.is_dir() or source.is_symlink():
            return None
        return lanes.collect_bundle(source, target, title=self.id.key, redact=self._clean)

    def _command(self, argv: Sequence[str], timeout: float, purpose: str) -> CommandResult:
        """Run a command of the case in the workspace, under the trial's supervisor, without the provider's keys."""
        place = self._place()
        assert self._lease is not None  # noqa: S101 - made with the place
        out, err = place.scratch / f"{purpose}.out", place.scratch / f"{purpose}.err"
        folder = str(self.case.folder)
        ended = self._lease.run(
            Command(
                argv=tuple(part.replace("{case}", folder).replace("{python}", sys.executable) for part in argv),
                cwd=place.work,
                env={**place.env, **self.case.spec.workspace.env},
                stdout=out,
                stderr=err,
                timeout=timeout,
                output_limit=_CHECK_BYTES,
                json_lines=False,
            )
        )
        texts = [path.read_bytes().decode("utf-8", "replace") if path.exists() else "" for path in (out, err)]
        if ended.reason == "spawn_failed":
            texts[1] = ended.message
        return CommandResult(ended.exit_status, texts[0], texts[1], ended.reason == "timeout")

    # ---------------------------------------------------------------------------------------------- the ending

    def settle(self, exception: BaseException | None) -> TrialRecord:
        """Write the record, once: on return it is on disk.

        Args:
            exception: What the test function raised, or None.

        Raises:
            OSError: The record could not be written; the trial then counts as missing.
        """
        self.record = self._judge(exception)
        self.bench.journal.write_record(self.record)
        return self.record

    def _judge(self, exception: BaseException | None) -> TrialRecord:
        state, case = self._state, self.case
        outcome, reason, error = self._outcome(exception)
        transcript, marks = state.answer.transcript, state.marks
        score, checks = self._score(outcome, exception)
        if outcome is Outcome.ERROR:
            score = None
        files = self._files()
        return TrialRecord(
            run=self.bench.run,
            lane=self.id.lane,
            case=self.id.case,
            condition=self.id.condition,
            trial=self.id.trial,
            outcome=outcome,
            reason=self._clean(reason),
            control=self.condition.control,
            category=case.spec.category,
            skill=case.skill,
            fingerprint=case.fingerprint,
            provider=self.bench.info,
            score=score,
            checks=checks,
            selected_skill=marks.selected_skill if marks else None,
            skills_used=transcript.skills_used,
            exposure=state.exposure,
            isolation=self._isolation(),
            error=error,
            tokens=transcript.tokens,
            cost_usd=transcript.cost_usd,
            attempts=(*state.attempts, *transcript.attempts),
            transcript=files.get("transcript.jsonl"),
            stdout=files.get("stdout"),
            stderr=files.get("stderr"),
            artifacts=(),
            final_text=self._clean(transcript.final_text[:_ANSWER_CHARS]),
            notes=tuple(state.notes),
            timing=TrialTiming(
                started=self._started,
                duration_s=time.monotonic() - self._clock,
                agent_s=state.ended.duration if state.ended else 0.0,
                worker=self.bench.worker,
                pid=os.getpid(),
                session_id=transcript.session_id,
            ),
        )

    def _outcome(self, exception: BaseException | None) -> tuple[Outcome, str, TrialError | None]:
        state = self._state
        if exception is not None:
            return _from_exception(exception)
        if state.fault is not None:
            return Outcome.ERROR, state.fault.message, state.fault
        error, marks = state.answer.error, state.marks
        if error is not None and (ended := self._ended_badly(error)) is not None:
            return ended
        if marks is None:
            return Outcome.PASSED, "", error
        if marks.faults:
            return Outcome.ERROR, marks.faults[0].message, marks.faults[0]
        return (Outcome.PASSED if marks.passed else Outcome.FAILED), marks.reason, error

    def _ended_badly(self, error: TrialError) -> tuple[Outcome, str, TrialError] | None:
        """Return the outcome of an answer with an error, or None when its checks are to decide."""
        rule = policy(error.error_class).outcome
        if error.error_class is ErrorClass.TIMEOUT:
            chosen = self.case.spec.budget.on_timeout
            left_nothing = not self._state.answer.transcript.tool_calls and not self._changed()
            rule = "error" if chosen == "error" or left_nothing else "grade" if chosen == "grade" else "failed"
        if rule == "error":
            return Outcome.ERROR, error.message, error
        if rule == "failed":
            return Outcome.FAILED, f"{error.error_class.value}: {error.message}", error
        return None

    def _changed(self) -> bool:
        return self._home is not None and evidence.snapshot(self._home.work) != self._state.before

    def _score(self, outcome: Outcome, exception: BaseException | None) -> tuple[Score | None, tuple[CheckResult, ...]]:
        state = self._state
        if state.marks is not None:
            return state.marks.score, state.marks.checks
        if not self.case.python:
            return None, ()
        passed = outcome is Outcome.PASSED
        why = "no assertion failed" if passed else str(exception).strip().partition("\n")[0]
        check = CheckResult(id="asserts", kind="python", passed=passed, reason=why)
        parts = [Component(id="asserts", value=float(passed), weight=1.0, reason=why)]
        parts += [
            Component(id=name, value=value, weight=1.0, reason="set by the case")
            for name, value in state.scores.items()
        ]
        total = sum(part.value or 0.0 for part in parts) / len(parts)
        return Score(total=total, components=tuple(parts)), (check,)

    def _isolation(self) -> Isolation:
        ended = self._state.ended
        if ended is None:
            return Isolation(sandbox="none", sandbox_reason="no agent process was run")
        return Isolation(
            sandbox=ended.sandbox,
            sandbox_reason="" if ended.sandbox != "none" else self.bench.sandbox.reason,
            tree=ended.tree,
            killed=ended.killed,
        )

    def _files(self) -> dict[str, FileRef]:
        ended, run_folder = self._state.ended, self.bench.folder
        cut = {"stdout": bool(ended and ended.stdout.truncated), "stderr": bool(ended and ended.stderr.truncated)}
        found = {
            name: evidence.keep_file(self._folder / name, run_folder, truncated=cut.get(name, False))
            for name in ("transcript.jsonl", "stdout", "stderr")
        }
        return {name: file for name, file in found.items() if file is not None}

    def _clean(self, text: str) -> str:
        return redact_named(self._redactor.text(text))

    def close(self) -> None:
        """Keep what is to be kept, and remove the home with everything that still runs in it."""
        if self._home is None:
            self._stack.close()
            return
        with self._stack:
            self._keep()
        self._home = None

    def _keep(self) -> None:
        assert self._home is not None  # noqa: S101 - asked by close
        if self._state.before or self._state.asked:
            changes = evidence.workspace_changes(
                self._home.work, self._state.before, evidence.snapshot(self._home.work), self._state.given
            )
            if changes:
                (self._folder / "workspace.diff").write_text(self._clean(changes), encoding="utf-8", errors="replace")
        keep = self.bench.settings.keep
        bad = self.record is None or self.record.outcome is not Outcome.PASSED
        if keep == "all" or (keep == "failed" and bad):
            evidence.keep_tree(self._home.work, self._folder / "workspace")


def _from_exception(exception: BaseException) -> tuple[Outcome, str, TrialError | None]:
    text = str(exception).strip().partition("\n")[0]
    if isinstance(exception, TrialFault):
        return (
            Outcome.ERROR,
            exception.message,
            TrialError(error_class=exception.error_class, message=exception.message),
        )
    # pytest.fail and pytest.skip raise exceptions of pytest's own that are no Exception.
    kind = type(exception).__name__
    if isinstance(exception, AssertionError) or kind == "Failed":
        return Outcome.FAILED, text or "an assertion failed", None
    if kind == "Skipped":
        return Outcome.MISSING, f"skipped: {text}", None
    message = f"{kind}: {text}" if text else kind
    where = ErrorClass.SETUP if isinstance(exception, OSError | UserMistake) else ErrorClass.INTERNAL
    return Outcome.ERROR, message, TrialError(error_class=where, message=message)


def _status(done: CommandResult) -> str:
    return "a time-out" if done.timed_out else f"exit status {done.exit_status}"


def _with(
    case: Case,
    *,
    prompt: str | None,
    template: str | Path | None,
    files: Mapping[str, str] | None,
    timeout: float | None,
) -> Case:
    """Return a Python case with what its function asks for."""
    workspace = case.spec.workspace.model_copy(
        update={
            key: value
            for key, value in (("template", None if template is None else str(template)), ("files", dict(files or {})))
            if value
        }
    )
    changes: dict[str, Any] = {"workspace": workspace}
    if prompt is not None:
        changes["prompt"] = prompt
    if timeout is not None:
        changes["budget"] = case.spec.budget.model_copy(update={"timeout": timeout})
    return case.model_copy(update={"spec": case.spec.model_copy(update=changes)})
