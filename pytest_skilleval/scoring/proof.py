"""What a proof bundle must hold, by profile, and how good its evidence is."""

from __future__ import annotations

from typing import Literal, NamedTuple

from pytest_skilleval.casespec import BundleCheck

from .bundle import Manifest, look_over
from .facts import Facts
from .finding import Finding, no, yes
from .kinds import EvidenceKind

__all__ = ["Completeness", "Evidence", "check_bundle", "completeness", "evidence"]

Profile = Literal["minimal", "reporting", "interactive"]

_REPORTING: tuple[tuple[str, frozenset[EvidenceKind]], ...] = (
    ("a report", frozenset({"report"})),
    ("a piece of evidence besides it", frozenset({"json", "recording", "screenshot", "video", "notes"})),
)
PROFILES: dict[Profile, tuple[tuple[str, frozenset[EvidenceKind]], ...]] = {
    "minimal": (("a report or notes", frozenset({"report", "notes"})),),
    "reporting": _REPORTING,
    "interactive": (
        *_REPORTING,
        ("a screenshot", frozenset({"screenshot"})),
        ("a recording or a video", frozenset({"recording", "video"})),
    ),
}
"""What must be there: in words, and the kinds that satisfy it."""

KINDS_EXPECTED: dict[Profile, int] = {"minimal": 1, "reporting": 2, "interactive": 4}
"""Different kinds of evidence with which coverage is full."""

_LEAST_BYTES: dict[EvidenceKind, int] = {"screenshot": 200, "video": 200, "recording": 60, "report": 100, "notes": 10}
"""Smaller files of these kinds hold no evidence."""


class Completeness(NamedTuple):
    """How much of a profile is there."""

    share: float
    missing: tuple[str, ...]


class Evidence(NamedTuple):
    """The quality of a bundle's evidence: the mean of five shares."""

    value: float
    reason: str


def completeness(manifest: Manifest, profile: Profile, report: str | None = None) -> Completeness:
    """Return the share of a profile's demands that good files satisfy, and the demands that none does.

    Args:
        manifest: What is in the bundle.
        profile: Which demands.
        report: The path of the file that is the report, whatever its name.
    """
    kinds = _kinds(manifest, report)
    wanted = PROFILES[profile]
    missing = tuple(words for words, any_of in wanted if not any_of & kinds)
    return Completeness((len(wanted) - len(missing)) / len(wanted), missing)


def _kinds(manifest: Manifest, report: str | None) -> set[EvidenceKind]:
    return {
        "report" if file.name == report and file.kind in {"notes", "report"} else file.kind
        for file in manifest.files
        if file.problem is None
    }


def evidence(manifest: Manifest, profile: Profile, report: str | None = None) -> Evidence:
    """Score a bundle's evidence: completeness, coverage of kinds, different files, sane sizes, good content.

    Each is a share in [0, 1]; things that were refused count as bad content.
    """
    files = manifest.files
    if not files:
        return Evidence(0.0, "the bundle is empty")
    shares = {
        "complete": completeness(manifest, profile, report).share,
        "kinds": min(1.0, len(_kinds(manifest, report) - {"other"}) / KINDS_EXPECTED[profile]),
        "different": len({file.digest for file in files}) / len(files),
        "sizes": sum(file.bytes >= _LEAST_BYTES.get(file.kind, 1) for file in files) / len(files),
        "content": sum(file.problem is None for file in files) / (len(files) + len(manifest.refused)),
    }
    value = sum(shares.values()) / len(shares)
    bad = [f"{file.name}: {file.problem}" for file in files if file.problem]
    bad += [f"{refusal.name} was refused: {refusal.why}" for refusal in manifest.refused]
    said = ", ".join(f"{name} {share:.2f}" for name, share in shares.items())
    return Evidence(value, "; ".join([said, *bad]))


def check_bundle(check: BundleCheck, facts: Facts) -> Finding:
    """Look at a bundle where it lies in the workspace."""
    source = facts.workspace / check.path
    if source.is_symlink() or not source.is_dir() or not source.resolve().is_relative_to(facts.workspace.resolve()):
        return no(f"{check.path} is no folder of the workspace")
    manifest = look_over(source)
    wanted = facts.case.spec.report
    report = wanted.path.removeprefix(f"{check.path.rstrip('/')}/") if wanted else None
    missing = completeness(manifest, check.profile, report).missing
    if missing:
        bad = [f"{file.name}: {file.problem}" for file in manifest.files if file.problem]
        return no("; ".join([f"{check.path} lacks {', '.join(missing)} (profile {check.profile})", *bad])[:500])
    return yes(f"{check.path} holds {len(manifest.files)} files and satisfies profile {check.profile}")
