"""Files that an agent must leave: how many of the wanted kind there are."""

from __future__ import annotations

from typing import NamedTuple

from pytest_skilleval.casespec import Artifact

from .facts import Facts
from .folder import Folder, Refused
from .kinds import content_problem

__all__ = ["ArtifactCount", "count_artifacts"]

LOOKED_AT = 1000
"""Files that are opened for one demand."""


class ArtifactCount(NamedTuple):
    """Whether one demand for files is met."""

    enough: bool
    reason: str


def count_artifacts(artifact: Artifact, facts: Facts) -> ArtifactCount:
    """Count the files that the agent made or changed, and that really are of the wanted kind."""
    folder = Folder(facts.workspace)
    try:
        names = folder.matches(artifact.path)
    except Refused as refusal:
        return ArtifactCount(enough=False, reason=str(refusal))
    good, why_not = 0, ""
    for name in names[:LOOKED_AT]:
        try:
            problem = _problem(artifact, name, folder, facts)
        except Refused as refusal:
            problem = str(refusal)
        if problem is None:
            good += 1
        else:
            why_not = why_not or f" ({problem})"
    what = "files" if artifact.kind == "any" else f"{artifact.kind} files"
    return ArtifactCount(
        enough=good >= artifact.min,
        reason=f"{artifact.path}: {good} {what}, wanted {artifact.min}{'' if good >= artifact.min else why_not}",
    )


def _problem(artifact: Artifact, name: str, folder: Folder, facts: Facts) -> str | None:
    data = folder.read(name)
    given = (facts.before or {}).get(name)
    if given is not None and given == folder.digest(name):
        return f"{name} is what the agent was given"
    problem = content_problem(name, data, "other" if artifact.kind == "any" else artifact.kind)
    return None if problem is None else f"{name}: {problem}"
