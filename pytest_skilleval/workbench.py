"""What all trials of one process share: settings, provider, skills, journal, and the spawner of supervisors."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_skilleval.against import Against
from pytest_skilleval.caps import caps_of
from pytest_skilleval.errors import ErrorClass, OptionMistake, SkillMistake, UserMistake
from pytest_skilleval.halts import Decision, Halts, parse_budget
from pytest_skilleval.interrupts import Watch
from pytest_skilleval.journal import Journal, hold
from pytest_skilleval.model import CONDITIONS, Case, Condition, Skill, TrialId
from pytest_skilleval.pauses import Pauses, session_folder
from pytest_skilleval.providers import make_provider
from pytest_skilleval.providers.base import Provider, ProviderSettings
from pytest_skilleval.providers.classes import Policy, Retry, error_table, read_retry
from pytest_skilleval.providers.project import provider_table, skilleval_table
from pytest_skilleval.skills import find_skills, stale_skill
from pytest_skilleval.slots import Slots
from pytest_skilleval.workspace.home import Home, home_base, own_base
from pytest_skilleval.workspace.lease import Lease
from pytest_skilleval.workspace.sandbox import Sandbox, SandboxPlan, SandboxUnavailable, detect
from pytest_skilleval.workspace.spawn import Spawner
from pytest_skilleval.workspace.sweep import sweep

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pytest_skilleval.options import Settings
    from pytest_skilleval.records import ProviderInfo

__all__ = ["Workbench", "provider_table"]


class Workbench:
    """What all trials of one process share.

    Args:
        settings: What the user asked for.
        run: The run's id.
        token: Shared by all processes of the session; tells our run folder from a neighbour's.
        worker: The name of this process, such as `gw0` or `main`.
        info: What another process of the session has detected of the provider, or None to detect it here.
        began: When the session began, by `time.monotonic`; now, where that is not known.
        providers: Further providers from hooks.
        conditions: Further conditions from hooks.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        run: str,
        token: str,
        worker: str = "main",
        info: ProviderInfo | None = None,
        began: float = 0.0,
        providers: Mapping[str, Callable[[ProviderSettings], Provider]] | None = None,
        conditions: Sequence[Condition] = (),
    ) -> None:
        self.settings = settings
        self.run = run
        self.token = token
        self.worker = worker
        self.environ = dict(os.environ)
        self.conditions = CONDITIONS | {condition.name: condition for condition in conditions}
        self.notes: dict[str, None] = {}
        self._skill_folders: dict[Path, None] = {}
        self.scheduled = False
        """Whether the plugin's own scheduler hands out the trials."""
        self.events: list[str] = []
        self.decisions: dict[tuple[str, str, str], int] = {}
        """Group to the most passes with which its gate is red; filled for early stopping."""
        self._held: int | None = None
        self._watch: Watch | None = None
        self._scratch: Lease | None = None
        self.warnings: tuple[str, ...] = ()
        self._providers = providers or {}
        self._info = info
        self.ready = info is not None
        """Whether this process, or the one that handed on what it found, has made ready."""
        self._began = began or time.monotonic()
        self._stale: dict[tuple[str, str], Skill | None] = {}
        self._check_names()
        parse_budget(settings.budget)

    def _check_names(self) -> None:
        for name in self.settings.conditions:
            if name != "all" and name not in self.conditions:
                raise OptionMistake(f"--skilleval-condition={name}: choose from {', '.join(self.conditions)}, all")

    # ------------------------------------------------------------------------------------------- who answers

    @cached_property
    def provider(self) -> Provider:
        """Who answers."""
        chosen = self.settings
        name = chosen.provider.removeprefix("command:")
        return make_provider(
            chosen.provider,
            ProviderSettings(
                model=chosen.model,
                effort=chosen.effort,
                seed=chosen.seed,
                environ=self.environ,
                rootpath=chosen.rootpath,
                options=provider_table(chosen.rootpath, name),
                record=chosen.record,
                replay=chosen.replay,
            ),
            self._providers,
        )

    @cached_property
    def judge(self) -> Provider | None:
        """Who decides statements in prose, found once a process; None when nobody is asked.

        Raises:
            UserMistake: It is not known, or not there.
        """
        if self.settings.judge is None:
            return None
        name, _, model = self.settings.judge.partition("@")
        settings = self.settings
        judge = make_provider(
            name,
            ProviderSettings(
                model=model or None,
                seed=settings.seed,
                environ=self.environ,
                rootpath=settings.rootpath,
                options=provider_table(settings.rootpath, name.removeprefix("command:")),
            ),
            self._providers,
        )
        self.notes.update(dict.fromkeys(f"judge: {warning}" for warning in judge.detect().warnings))
        return judge

    @property
    def info(self) -> ProviderInfo:
        """What is known of who answers; detected once a session."""
        if self._info is None:
            self._info, self.warnings = self.provider.detect()
        return self._info

    @cached_property
    def sandbox(self) -> Sandbox:
        """Whether bubblewrap works here, tried once a process.

        Raises:
            OptionMistake: It is required and does not work.
        """
        if not self.provider.paid and self.settings.sandbox == "auto":
            # The built-in simulations run only the project's own scripts; a sandbox would only make them slower.
            return replace(detect("off"), reason="a simulated agent needs none")
        try:
            return detect(self.settings.sandbox)
        except SandboxUnavailable as error:
            raise OptionMistake(f"--skilleval-sandbox=require: {error}") from None

    @cached_property
    def halts(self) -> Halts:
        """Reasons not to start a trial."""
        decisions = {group: Decision(self.settings.trials, most) for group, most in self.decisions.items()}
        budget = parse_budget(self.settings.budget)
        return Halts(session_folder(self.folder, self.token), self.worker, budget, self._began, decisions)

    @cached_property
    def pauses(self) -> Pauses:
        """Waits that a provider has asked for."""
        return Pauses(session_folder(self.folder, self.token), self.worker, self.retry.longest)

    @cached_property
    def slots(self) -> Slots:
        """Caps, where no scheduler of ours holds them."""
        caps = caps_of(self.settings.caps, self.info.id, paid=self.provider.paid)
        if self.judge is None:
            return Slots(self.folder, {} if self.scheduled else caps)
        caps = caps_of(caps.items(), self.judge.id, paid=self.judge.paid)
        if self.scheduled:
            # It gives each trial a slot of its agent alone: of a judge's it knows nothing.
            name = f"provider:{self.judge.id}"
            caps = {name: caps[name]} if name in caps and self.judge.id != self.info.id else {}
        return Slots(self.folder, caps)

    @cached_property
    def rules(self) -> dict[ErrorClass, Policy]:
        """What each class of error does, with the project's changes.

        Raises:
            OptionMistake: `[tool.skilleval.errors]` names a class, key or value that does not exist.
        """
        return error_table(skilleval_table(self.settings.rootpath, "errors"))

    @cached_property
    def retry(self) -> Retry:
        """How errors that pass are waited out.

        Raises:
            OptionMistake: `[tool.skilleval.retry]` holds a key or value that is not allowed.
        """
        return read_retry(skilleval_table(self.settings.rootpath, "retry"))

    def make_ready(self) -> None:
        """Find all that is asked for by name, so that what is not there costs no agent.

        Raises:
            UserMistake: The provider, judge, sandbox, budget or a table of `[tool.skilleval]` cannot be used.
        """
        _ = self.judge, self.info, self.sandbox, self.rules, self.retry
        counted = parse_budget(self.settings.budget).usd is not None and not self.settings.allow_unknown_cost
        if counted and (silent := self._silent_on_cost()) is not None:
            raise OptionMistake(
                f"--skilleval-budget=usd: {silent}; give tokens= or time= instead, "
                "or add --skilleval-allow-unknown-cost"
            )
        self.ready = True

    def _silent_on_cost(self) -> str | None:
        """Return who does not say what it costs; a judge that costs nothing need not."""
        if not getattr(self.provider, "tells_cost", False):
            return f"{self.provider.id} does not say what a trial costs, so the budget would never be spent"
        judge = self.judge
        if judge is not None and judge.paid and not getattr(judge, "tells_cost", False):
            return f"judge {judge.id} does not say what an answer costs, so the budget would not hold it"
        return None

    def refuse(self, case: Case) -> None:
        """Refuse a case that the provider cannot be asked honestly.

        Raises:
            UserMistake: The provider objects.
        """
        objection = getattr(self.provider, "objection", None)
        if objection is not None and (text := objection(case)) is not None:
            raise UserMistake(text)

    # --------------------------------------------------------------------------------------------- the skills

    @cached_property
    def skills(self) -> dict[str, Skill]:
        """The skills under test by name."""
        return find_skills((*self.settings.skills, *self._skill_folders))

    def add_skill_folder(self, folder: Path) -> None:
        """Take in the skill that a file of evals belongs to."""
        if folder not in self._skill_folders:
            self._skill_folders[folder] = None
            self.__dict__.pop("skills", None)

    def skill_of(self, case: Case) -> Skill | None:
        """Return the case's skill as it is now.

        Raises:
            SkillMistake: No folder holds it.
        """
        if case.skill is None:
            return None
        try:
            return self.skills[case.skill]
        except KeyError:
            found = ", ".join(sorted(self.skills)) or "none"
            places = ", ".join(_short(path, self.settings.rootpath) for path in self.settings.skills)
            raise SkillMistake(
                f"{_short(case.path, self.settings.rootpath)}:{case.line}: skill: {case.skill!r} lies in none of "
                f"{places} "
                f"(found: {found}); write its name, or name its folder with --skilleval-skills"
            ) from None

    def stale_of(self, case: Case) -> Skill | None:
        """Return the stale version of the case's skill, or None where there is none; that is noted once."""
        current = self.skill_of(case)
        if current is None:
            return None
        return self._stale_version(current, str(case.folder / case.spec.stale) if case.spec.stale else "")

    def _stale_version(self, current: Skill, folder: str = "") -> Skill | None:
        key = (current.name, folder)
        if key not in self._stale:
            self._stale[key] = self._find_stale(current, folder)
        return self._stale[key]

    def _find_stale(self, current: Skill, folder: str) -> Skill | None:
        reference = folder or self.settings.stale
        stale = stale_skill(reference, current.name, current, target=self.scratch, root=self.settings.rootpath)
        left_out = f"stale left out for skill {current.name}"
        if stale is None:
            self.notes[f"{left_out}: no earlier version found; name one with --skilleval-stale"] = None
        elif stale.digest == current.digest:
            self.notes[f"{left_out}: the stale version equals the current one"] = None
            return None
        return stale

    def visible(self, case: Case, condition: Condition) -> tuple[Skill, ...]:
        """Return the skills that a condition installs or preloads, the case's own first.

        Where a stale version is asked for, the other skills are stale too, as far as an older version is known.
        """
        if condition.installs == "nothing" and not condition.preloads:
            return ()
        if condition.base and self.against is not None:
            return self.against.side(self.visible(case, condition.model_copy(update={"base": False})))
        stale = condition.installs == "stale"
        own = self.stale_of(case) if stale else self.skill_of(case)
        others = [skill for name, skill in self.skills.items() if name != case.skill]
        if stale and case.skill is None:
            others = [self._stale_version(skill) or skill for skill in others]
        if condition.installs == "nothing" and own is not None:
            return (own,)
        return (own, *others) if own is not None else tuple(others)

    @cached_property
    def against(self) -> Against | None:
        """The older versions that run beside the current ones, or None when none are asked for."""
        reference = self.settings.against
        return None if reference is None else Against(reference, target=self.scratch, root=self.settings.rootpath)

    def conditions_of(self, case: Case) -> tuple[Condition, ...]:
        """Return the conditions under which a case runs, in the order of every table."""
        asked = self.settings.conditions
        own = case.spec.conditions or tuple(CONDITIONS)
        whole = not asked or "all" in asked
        names = own if whole else [name for name in asked if not case.spec.conditions or name in own]
        chosen = [condition for name, condition in self.conditions.items() if name in names]
        if self.against is not None:
            # Beside its twin, so that a drift during the run meets both sides alike.
            chosen = [one for condition in chosen for one in (condition, condition.twin) if one is not None]
        return tuple(
            condition
            for condition in chosen
            if condition.installs != "stale" or case.skill is None or self.stale_of(case) is not None
        )

    # ---------------------------------------------------------------------------------------------- the places

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self.settings.output / self.run

    @cached_property
    def journal(self) -> Journal:
        """Intents and records of this run."""
        return Journal(self.folder, self.run)

    @cached_property
    def base(self) -> Path:
        """Where homes go."""
        return home_base(self.settings.rootpath)

    @cached_property
    def scratch(self) -> Path:
        """A folder for this process, removed at its end; when it is killed, by whoever sweeps next."""
        folder = self.base / self.run / f"scratch-{os.getpid()}"
        own_base(self.base)
        self._scratch = Lease(os.fsencode(folder))
        folder.mkdir(mode=0o700)
        return folder

    @cached_property
    def spawner(self) -> Spawner:
        """The fork server of this process, started at the first trial."""
        return Spawner()

    def sandbox_plan(self, place: Home, reads: tuple[Path, ...]) -> SandboxPlan | None:
        """Return how an agent's command is boxed in, or None without a sandbox.

        The project is hidden: its checkers and expected answers are no business of the agent.
        """
        sandbox = self.sandbox
        if sandbox.kind == "none":
            return None
        return sandbox.plan(writable=(place.root,), readable=reads, hidden=(self.settings.rootpath,))

    def bundle_folder(self, trial: TrialId) -> Path:
        """Return where a trial's proof bundle is kept."""
        return self.folder / trial.bundle

    def sweep(self) -> None:
        """Kill and remove what earlier, killed runs left; a living neighbour stays untouched.

        Raises:
            OptionMistake: The folder for homes belongs to somebody else.
        """
        if not self.base.is_dir():
            return
        own_base(self.base)
        swept = sweep(self.base)
        if swept.homes or swept.processes:
            left = f"{swept.processes} processes ended, {swept.homes} homes removed"
            self.events.append(f"an earlier run was killed: {left}")

    def hold_run(self) -> None:
        """Say that this process works on the run: nobody takes it over meanwhile."""
        self._held = hold(self.folder)

    def listen(self) -> None:
        """Let a worker learn at once that its session is stopped or dead; from its first trial on."""
        if self._watch is None and self.worker != "main":
            self._watch = Watch(self.folder)
            self._watch.start()

    def interrupted(self) -> None:
        """Learn that pytest has taken an interrupt in."""
        if self._watch is not None:
            self._watch.heard = True

    def close(self) -> None:
        """Stop the fork server and remove this process's folders; the last process removes the shared ones.

        May be called twice.
        """
        if self._watch is not None:
            self._watch.end()
        if self._held is not None:
            os.close(self._held)
            self._held = None
        if (spawner := self.__dict__.pop("spawner", None)) is not None:
            spawner.close()
        if self._scratch is not None:
            self._scratch.close(remove_home=True)
            self._scratch = None
            del self.scratch
        base = self.__dict__.get("base")
        if base is None or not base.is_dir() or base.stat().st_uid != os.getuid():
            return
        # Processes that were killed leave folders behind; of a killed controller only workers are left to see to it.
        sweep(base)
        for folder in (base / self.run, base):
            with contextlib.suppress(OSError):
                folder.rmdir()
        if self._watch is not None and self._watch.orphaned:
            os._exit(1)  # there is nobody to report to: going on would only spoil a dead controller's terminal


def _short(path: Path, root: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
