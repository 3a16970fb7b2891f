"""What is asked: Case, Condition, Skill, TrialId."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pytest_skilleval.casespec import CaseSpec, Lane
from pytest_skilleval.frozen import NOTHING, Frozen, canonical_json, digest_text

__all__ = ["BASE", "CONDITIONS", "Case", "Condition", "Skill", "TrialId"]


BASE = "@base"
"""Ends the name of a condition that shows the skills as they were."""


class Condition(Frozen):
    """What the agent can know of the skill under test."""

    name: str
    """`none`, `self-load`, `preloaded`, `stale`, or a further one from a hook."""
    control: bool = False
    """Whether the condition is a control: its failed trials are shown as missed, never red."""
    installs: Literal["nothing", "current", "stale"] = "nothing"
    """Which version of the skill is installed where the agent discovers skills."""
    preloads: bool = False
    """Whether the skill's text is put into the context."""
    base: bool = False
    """Whether it shows the skills as they were: the baseline side of a comparison in one run."""

    @property
    def twin(self) -> Condition | None:
        """The same condition with the skills as they were; None where no current skill is seen."""
        if self.base or self.installs == "stale" or (self.installs == "nothing" and not self.preloads):
            return None
        return self.model_copy(update={"name": f"{self.name}{BASE}", "control": True, "base": True})


CONDITIONS: dict[str, Condition] = {
    "none": Condition(name="none", control=True),
    "self-load": Condition(name="self-load", installs="current"),
    "preloaded": Condition(name="preloaded", preloads=True),
    "stale": Condition(name="stale", control=True, installs="stale"),
}
"""The built-in conditions, in the order of every table."""


_NAME_BYTES = 100
"""A longer name may not fit a file system."""


class TrialId(NamedTuple):
    """The identity of a work item: a node id never is one, since it depends on where pytest was started."""

    lane: str
    case: str
    condition: str
    trial: int

    @property
    def key(self) -> str:
        """`lane:case:condition:trial`, unique in a run."""
        return f"{self.lane}:{self.case}:{self.condition}:{self.trial}"

    @property
    def group(self) -> tuple[str, str, str]:
        """What all trials of one measurement share: lane, case and condition."""
        return (self.lane, self.case, self.condition)

    @property
    def folder(self) -> str:
        """The name of the trial's folder in a run: a digest, never text from a case."""
        return digest_text(self.key)[:20]

    @property
    def bundle(self) -> str:
        """Where its proof bundle is kept, relative to the run folder: unique, since the work item is in it."""
        case = self.case if len(self.case.encode()) <= _NAME_BYTES else f"{self.case[:20]}-{self.folder}"
        return f"bundles/{self.lane}/{case}/{self.condition}/t{self.trial}"


_NOT_ASKED = frozenset(
    {
        "id",
        "lane",
        "category",
        "description",
        "conditions",
        "stale",
        "solution",
        "answer",
        "stub",
        "min_pass_rate",
    }
)
"""What may change while old results stay comparable. (The lane is covered: it is added resolved.)"""


class Case(Frozen):
    """A case, resolved: where it came from, and the digests of what it names."""

    lane: Lane
    id: str
    spec: CaseSpec
    path: Path
    """The file that holds it."""
    line: int
    """1-based."""
    digests: dict[str, str] = NOTHING
    """Relative path to SHA-256 of each file that the fingerprint covers."""
    python: bool = False
    """Whether it is a test function."""
    extra: dict[str, Any] = NOTHING
    """Keys of foreign formats that are kept but not used."""

    @cached_property
    def fingerprint(self) -> str:
        """16 hex digits over what is asked and how it is judged; equal exactly when both are.

        Only what differs from a default enters, so that a key which a later version adds changes no fingerprint.
        """
        spec = self.spec
        asked: dict[str, Any] = spec.model_dump(mode="json", exclude_defaults=True, exclude=set(_NOT_ASKED))
        for check, given in zip(asked.get("checks", ()), spec.checks, strict=False):
            check.pop("description", None)
            if given.kind == "json" and given.equals is None and "equals" in given.model_fields_set:
                check["equals"] = None
        return digest_text(canonical_json(["case/1", self.lane.value, asked, dict(self.digests)]))[:16]

    def floor(self, condition: Condition) -> float | None:
        """Return the least pass rate that a gate allows under a condition; None where there is no gate.

        A bare number is no demand on controls: there the agent is to do badly. It is one where a case has only these.
        """
        gate = self.spec.min_pass_rate
        if gate is None or condition.base:
            return None  # nobody asks how good the older version is
        if isinstance(gate, dict):
            return gate.get(condition.name)
        names = self.spec.conditions or tuple(CONDITIONS)
        only_controls = all(name in CONDITIONS and CONDITIONS[name].control for name in names)
        return gate if only_controls or not condition.control else None

    @property
    def folder(self) -> Path:
        """What the case's relative paths start from."""
        return self.path.parent

    @property
    def skill(self) -> str | None:
        """The skill that should be used, or None."""
        return None if self.spec.skill == "none" else self.spec.skill


class Skill(Frozen):
    """A skill folder as it lies on disk."""

    name: str
    """From the front matter."""
    description: str
    path: Path
    """The folder that holds SKILL.md."""
    digest: str
    """SHA-256 over paths and bytes of all files that would be installed, 64 hex digits."""
    body: str
    """SKILL.md below its front matter."""
    files: tuple[str, ...] = ()
    """Relative paths of what would be installed, sorted."""
    warnings: tuple[str, ...] = ()
