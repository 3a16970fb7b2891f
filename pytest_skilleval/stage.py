"""The place of one attempt: a home under a lease, the skill installed as the condition says, a workspace made ready."""

from __future__ import annotations

import sys
import warnings
from contextlib import ExitStack
from typing import TYPE_CHECKING

from pytest_skilleval import evidence, lanes
from pytest_skilleval import skills as skill_folders
from pytest_skilleval.errors import ErrorClass, TrialFault
from pytest_skilleval.providers.base import Ask
from pytest_skilleval.records import Exposure, SkillSeen
from pytest_skilleval.scoring.facts import CommandResult
from pytest_skilleval.workspace.command import Command, Ended
from pytest_skilleval.workspace.home import home_root, make_home

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_skilleval.model import Case, Condition, Skill, TrialId
    from pytest_skilleval.providers.base import Launch
    from pytest_skilleval.workbench import Workbench

__all__ = ["Stage"]

_DISK_BYTES = 4 << 30
"""What an agent may leave below its home; a neighbour must not pay for a greedy one."""
_DISK_FILES = 100_000
_CHECK_BYTES = 1_000_000
"""Kept of what a check's command prints."""


class Stage:
    """Where one attempt of a trial happens.

    Args:
        bench: What all trials of this process share.
        trial: The work item.
        case: What is asked.
        condition: What the agent can know.
        attempt: 1-based; each attempt has a place of its own.
    """

    def __init__(self, bench: Workbench, trial: TrialId, case: Case, condition: Condition, attempt: int = 1) -> None:
        self._bench = bench
        self._trial = trial
        self.case = case
        self._condition = condition
        self._stack = ExitStack()
        name = trial.folder if attempt == 1 else f"{trial.folder}-{attempt}"
        root = home_root(bench.base, bench.run, name)
        # The lease comes first: from here on the home is removed even if this process is killed.
        self.lease = self._stack.enter_context(bench.spawner.lease(root, bench.base))
        try:
            self.home = make_home(bench.base, bench.run, name, bench.environ)
        except BaseException:
            self._stack.close()
            raise
        self.exposure = Exposure()
        self.before: dict[str, str] = {}
        self.after: dict[str, str] | None = None
        self.given: dict[str, bytes] = {}

    @property
    def workspace(self) -> Path:
        """The agent's working directory."""
        return self.home.work

    def prepare(self) -> None:
        """Install the skill, fill the workspace, run the set-up commands, and remember what the agent is given.

        Raises:
            TrialFault: Something could not be made ready.
        """
        spec = self.case.spec.workspace
        self.exposure = self._install()
        try:
            if spec.template is not None:
                evidence.keep_tree(self.case.folder / spec.template, self.workspace)
            for name, source in spec.copies.items():
                evidence.copy_into(self.case.folder / source, self.workspace / name)
            for name, text in spec.files.items():
                target = self.workspace / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8")
        except OSError as error:
            raise TrialFault(ErrorClass.SETUP, f"workspace: {error.strerror or error}: {error.filename}") from None
        self.home.install_git()
        for step in spec.setup:
            done = self.command(step.run, step.timeout, "setup")
            if done.exit_status != 0:
                said = (done.stderr or done.stdout).strip().splitlines()
                status = "a time-out" if done.timed_out else f"exit status {done.exit_status}"
                message = f"setup command {step.run[0]!r} ended with {status}: {said[-1] if said else 'no output'}"
                raise TrialFault(ErrorClass.SETUP, message)
        self.before = evidence.snapshot(self.workspace)
        self.given = evidence.small_files(self.workspace, self.before)

    def _install(self) -> Exposure:
        condition, case = self._condition, self.case
        root = self._bench.provider.skill_root(self.home.home)
        seen: list[SkillSeen] = []
        for skill in self._bench.visible(case, condition):
            stale = condition.installs == "stale" and skill.name == case.skill
            if condition.installs != "nothing" and root is not None:
                root.mkdir(parents=True, exist_ok=True)
                skill_folders.install(skill, root)
                seen.append(SkillSeen(name=skill.name, digest=skill.digest, stale=stale))
            elif condition.preloads:
                seen.append(SkillSeen(name=skill.name, digest=skill.digest, preloaded=True, stale=stale))
        own = next((skill.digest for skill in seen if skill.name == case.skill), None)
        return Exposure(skills=tuple(seen), digest=own)

    def question(self) -> Ask:
        """Return what the provider is asked."""
        condition, case, home = self._condition, self.case, self.home
        visible = self._bench.visible(case, condition)
        parts = [case.spec.context] if case.spec.context else []
        if condition.preloads:
            parts += [self._preload(skill) for skill in visible]
        return Ask(
            id=self._trial,
            case=case,
            kind=case.lane.kind,
            condition=condition,
            prompt=lanes.ask_text(case, condition),
            system="\n\n".join(parts),
            skills=visible if condition.installs != "nothing" else (),
            under_test=next((skill for skill in visible if skill.name == case.skill), None),
            home=home.home,
            workspace=home.work,
            tmp=home.tmp,
            scratch=home.scratch,
            env={**home.env, **case.spec.workspace.env},
            budget=case.spec.budget,
            sandboxed=self._bench.sandbox.kind != "none",
        )

    def _preload(self, skill: Skill) -> str:
        """Put a preloaded skill where no agent discovers it, so that its scripts can be reached by path alone."""
        shelf = self.home.home / "skill"
        shelf.mkdir(exist_ok=True)
        return skill_folders.preload_text(skill, skill_folders.install(skill, shelf))

    def launch(self, ask: Ask, launch: Launch, folder: Path) -> Ended:
        """Run the agent to its end; its process tree is dead by then.

        Args:
            ask: What it is asked.
            launch: Its command.
            folder: Where its streams go.
        """
        return self.lease.run(
            Command(
                argv=launch.argv,
                cwd=ask.workspace,
                env={**ask.env, **launch.env},
                stdin=launch.stdin,
                stdout=folder / "stdout",
                stderr=folder / "stderr",
                timeout=ask.budget.timeout,
                secrets=launch.secrets,
                result_markers=launch.result_markers,
                disk_limit=_DISK_BYTES,
                file_limit=_DISK_FILES,
                sandbox=self._bench.sandbox_plan(self.home, launch.reads),
            )
        )

    def command(self, argv: Sequence[str], timeout: float, purpose: str) -> CommandResult:
        """Run a command of the case in the workspace, without the provider's keys.

        Args:
            argv: `{case}` stands for the case file's folder, `{python}` for this Python.
            timeout: Seconds.
            purpose: Names its streams.
        """
        out, err = self.home.scratch / f"{purpose}.out", self.home.scratch / f"{purpose}.err"
        folder = str(self.case.folder)
        ended = self.lease.run(
            Command(
                argv=tuple(part.replace("{case}", folder).replace("{python}", sys.executable) for part in argv),
                cwd=self.workspace,
                env={**self.home.env, **self.case.spec.workspace.env},
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

    def look(self) -> None:
        """Remember what the agent left, before any check's command can change it."""
        self.after = evidence.snapshot(self.workspace)

    def changed(self) -> bool:
        """Tell whether the agent left anything in its workspace."""
        return self.after is not None and self.after != self.before

    def changes(self) -> str:
        """Return what the agent added, changed and removed."""
        if self.after is None:
            return ""
        return evidence.workspace_changes(self.workspace, self.before, self.after, self.given)

    def close(self) -> None:
        """End everything that still runs here, and remove the home; may be called twice."""
        self._stack.close()
        problems, self.lease.problems = self.lease.problems, ()
        for problem in problems:
            warnings.warn(f"{problem}; the next run tries again", stacklevel=2)
