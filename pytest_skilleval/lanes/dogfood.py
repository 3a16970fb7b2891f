"""The dogfood lane: the agent fills a proof bundle, and the bundle and its report are scored."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from pytest_skilleval.casespec import BundleSpec, Lane, ReportSpec
from pytest_skilleval.model import Case, Condition
from pytest_skilleval.records import Component
from pytest_skilleval.scoring.account import Account, parse_account
from pytest_skilleval.scoring.bundle import Manifest, load
from pytest_skilleval.scoring.facts import Facts
from pytest_skilleval.scoring.folder import Folder, Refused
from pytest_skilleval.scoring.proof import PROFILES, completeness, evidence
from pytest_skilleval.scoring.selection import select
from pytest_skilleval.scoring.workflow import Deeds

from . import parts
from .marks import Marks, Part, Weights, attempt, combine

__all__ = ["PASS_AT", "WEIGHTS", "ask_text", "grade"]

WEIGHTS = {
    "bundle-completeness": 0.2,
    "report-completeness": 0.2,
    "evidence-quality": 0.2,
    "taxonomy": 0.2,
    "reproducibility": 0.2,
}
PASS_AT = 0.6


def ask_text(case: Case, _condition: Condition) -> str:
    """Return the prompt, and where the proof must go; the same in every condition."""
    lines = []
    bundle, report = case.spec.bundle, case.spec.report
    if bundle:
        must = ", ".join(words for words, _ in PROFILES[bundle.profile])
        lines.append(f"Put your proof into the folder `{bundle.path}`. It must hold {must}.")
    if report:
        lines.append(f"Write the report as Markdown to `{report.path}`.")
        if report.sections:
            lines.append(f"Its sections: {', '.join(report.sections)}.")
        if report.taxonomy:
            lines.append(f"Name each finding by one of these words: {', '.join(report.taxonomy)}.")
        lines.append("Give the commands that show it again, and link each piece of evidence.")
    return "\n\n".join([case.spec.prompt.rstrip(), " ".join(lines)]) if lines else case.spec.prompt


@dataclass(frozen=True)
class _Proof:
    """What the agent handed in."""

    facts: Facts

    @property
    def bundle(self) -> BundleSpec | None:
        return self.facts.case.spec.bundle

    @property
    def wanted(self) -> ReportSpec | None:
        return self.facts.case.spec.report

    @cached_property
    def manifest(self) -> Manifest:
        return load(self.facts.bundle) if self.facts.bundle else Manifest()

    @property
    def report_name(self) -> str | None:
        """The report's path in the bundle; None when it lies elsewhere, or none is wanted."""
        if not self.wanted or not self.bundle:
            return None
        path, top = PurePosixPath(self.wanted.path), PurePosixPath(self.bundle.path)
        return path.relative_to(top).as_posix() if path.is_relative_to(top) else None

    @cached_property
    def account(self) -> Account | None:
        """The report, or None when there is none."""
        if not self.wanted:
            return None
        try:
            if self.report_name is None:
                text = Folder(self.facts.workspace).text(self.wanted.path)
            else:
                file = self.manifest.find(self.report_name)
                if file is None or not self.facts.bundle:
                    return None
                text = Folder(self.facts.bundle).text(file.path)
        except Refused:
            return None
        return parse_account(text) if text.strip() else None


def grade(facts: Facts, weights: Weights, pass_at: float | None) -> Marks:
    """Score a proof bundle by five dimensions of equal weight.

    It passes when the agent finished, the report is there with all its sections and every reference in it resolves,
    required checks and workflow steps hold, no anti-pattern of severity error was found, and the score is high enough.
    """
    proof = _Proof(facts)
    deeds = Deeds.of(facts.transcript, Lane.DOGFOOD)
    weight = {name: weights.of(name, facts.case) for name in WEIGHTS}
    beside = [
        attempt("workflow", 0.0, lambda: parts.workflow(facts, deeds, 0.0)),
        attempt("anti-patterns", 0.0, lambda: parts.anti_patterns(facts, deeds, 0.0)),
        parts.checks(facts, 0.0),
        attempt("artifacts", 0.0, lambda: parts.artifacts(facts, 0.0)),
    ]
    return combine(
        (
            attempt("bundle-completeness", 0.0, lambda: _bundle(proof, weight["bundle-completeness"])),
            attempt("report-completeness", 0.0, lambda: _report(proof, weight["report-completeness"])),
            attempt("evidence-quality", 0.0, lambda: _evidence(proof, weight["evidence-quality"])),
            attempt("taxonomy", 0.0, lambda: _taxonomy(proof, weight["taxonomy"])),
            attempt("reproducibility", 0.0, lambda: _reproducibility(proof, weight["reproducibility"])),
            *(
                part
                for part in beside
                if part.component.value is not None or part.problems or part.faults or part.checks
            ),
        ),
        pass_at=PASS_AT if pass_at is None else pass_at,
        selected_skill=select(facts).skill,
        problems=parts.finish_problems(facts),
    )


def _part(name: str, weight: float, value: float | None, reason: str, problems: tuple[str, ...] = ()) -> Part:
    return Part(Component(id=name, value=value, weight=weight, reason=reason[:500]), problems)


def _bundle(proof: _Proof, weight: float) -> Part:
    name = "bundle-completeness"
    if not proof.bundle:
        return _part(name, weight, None, "no bundle is asked for")
    result = completeness(proof.manifest, proof.bundle.profile, proof.report_name)
    lacks = f"lacks {', '.join(result.missing)}" if result.missing else "holds all that its profile asks for"
    return _part(name, weight, result.share, f"{len(proof.manifest.files)} files; {lacks}")


def _report(proof: _Proof, weight: float) -> Part:
    name = "report-completeness"
    if not proof.wanted:
        return _part(name, weight, None, "no report is asked for")
    if proof.account is None:
        reason = f"{proof.wanted.path} is not there or empty"
        return _part(name, weight, 0.0, reason, (reason,))
    share, missing = proof.account.completeness(proof.wanted.sections)
    problems = [f"the report lacks section {section}" for section in missing]
    if proof.report_name is not None:
        names = {file.name for file in proof.manifest.files}
        lost = proof.account.unresolved(proof.report_name, names)
        problems += [f"the report names {reference!r}, which is not in the bundle" for reference in lost]
    return _part(name, weight, share.value, "; ".join([share.reason, *problems]), tuple(problems))


def _evidence(proof: _Proof, weight: float) -> Part:
    name = "evidence-quality"
    if not proof.bundle:
        return _part(name, weight, None, "no bundle is asked for")
    result = evidence(proof.manifest, proof.bundle.profile, proof.report_name)
    return _part(name, weight, result.value, result.reason)


def _taxonomy(proof: _Proof, weight: float) -> Part:
    if not proof.wanted or not proof.wanted.taxonomy:
        return _part("taxonomy", weight, None, "no taxonomy is asked for")
    if proof.account is None:
        return _part("taxonomy", weight, 0.0, "there is no report")
    return _part("taxonomy", weight, *proof.account.taxonomy(proof.wanted.taxonomy))


def _reproducibility(proof: _Proof, weight: float) -> Part:
    if not proof.wanted:
        return _part("reproducibility", weight, None, "no report is asked for")
    if proof.account is None:
        return _part("reproducibility", weight, 0.0, "there is no report")
    return _part("reproducibility", weight, *proof.account.reproducibility())
