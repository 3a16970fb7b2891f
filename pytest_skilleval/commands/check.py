"""`skilleval check`: whether cases and skills are sound, before a single agent is paid for."""

from __future__ import annotations

import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pytest_skilleval import store
from pytest_skilleval.errors import UserMistake
from pytest_skilleval.model import Case
from pytest_skilleval.records import Outcome
from pytest_skilleval.reports import numbers
from pytest_skilleval.results import Report, TrialLine

from .answer import FINE, NOT_GOOD, Answer, table
from .loading import Loading, loading
from .place import Place, add_output, place_of
from .proof import lines_by_case, prove
from .session import run_pytest, stoppable, tell, workers
from .suite import Finding, Suite, read_suite

__all__ = ["add_arguments", "run"]

EXAMPLES = """\
examples:
  skilleval check                            all cases
  skilleval check cases/execution -n 4       one lane
  skilleval check 'compare-*'                cases by id

The oracle runs each case's solution, which must pass; the no-op does nothing, for which each check must fail.
Neither needs a model. Only simulated agents are started. What Claude Code and Codex really load of each skill is shown
as it was measured; (!) marks what its author did not write like that.

exit status: 0 sound, 1 something is broken
"""
Lines = dict[tuple[str, str], list[TrialLine]]
"""The trials of one run, by lane and case."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("cases", metavar="CASES", nargs="*", help="case files, folders or globs of ids (default: all)")
    parser.add_argument(
        "-n", type=int, metavar="N", help="workers (default: as many as there are cores, at most 4; 0 = none)"
    )
    parser.add_argument("--strict", action="store_true", help="warnings end with exit status 1 too")
    add_output(parser)


def run(arguments: Namespace) -> Answer:
    """Check the project's cases and skills."""
    place = place_of(arguments)
    paths = [Path(text) for text in arguments.cases if Path(text).exists()]
    ids = [text for text in arguments.cases if not Path(text).exists()]
    suite, seen = read_suite(place, paths, ids), loading(place)
    suite.findings.extend(seen.findings)
    if any(finding.kind == "mistake" for finding in suite.findings):
        # pytest would refuse to start: nothing can be said of the others yet.
        return _answer(suite, seen, {}, {}, suite.findings, strict=arguments.strict)
    runs: list[Lines] = []
    with stoppable(), tempfile.TemporaryDirectory(prefix="skilleval-check-") as folder:
        for provider in ("oracle", "noop"):
            tell(f"{provider}: {numbers.count(len(suite.cases), 'case')} ...")
            words = (*_selection(paths, ids), "-n", str(workers(arguments.n)))
            runs.append(lines_by_case(_simulate(place, provider, Path(folder) / provider, words)))
    cases = {(case.lane.value, case.id): case for case in suite.cases}
    proven = _placed(place, suite, prove(cases, *runs))
    return _answer(suite, seen, runs[0], runs[1], [*suite.findings, *proven], strict=arguments.strict)


def _selection(paths: Sequence[Path], ids: Sequence[str]) -> Iterator[str]:
    yield from map(str, paths)
    yield from (f"--skilleval-case={pattern}" for pattern in ids)


def _simulate(place: Place, provider: str, output: Path, words: Sequence[str]) -> Report:
    """Run pytest over the cases with a simulated agent, and return the run.

    Raises:
        UserMistake: pytest refused to start; its own words are passed on.
        KeyboardInterrupt: The user has seen enough; pytest has stopped by then.
    """
    said = run_pytest(place, [
        *words, "-q", "-p", "no:cacheprovider",
        f"--skilleval-provider={provider}", "--skilleval-lane=all", "--skilleval-trials=1",
        f"--skilleval-output={output / 'runs'}", "--skilleval-gate=never", "--skilleval-max-errors=1",
        "--skilleval-report=json",
    ])  # fmt: skip
    reports = sorted((output / "runs").glob("*/report.json"))
    if not reports:
        raise UserMistake(f"pytest ran no case: {said.last_words}")
    return store.read_report(reports[-1])


def _placed(place: Place, suite: Suite, findings: Any) -> list[Finding]:
    """Give each finding the file and line of its case."""
    places = {
        f"{case.lane}:{case.id}": f"{_relative(case.path, place.root)}:{case.line}: {case.id}" for case in suite.cases
    }
    return [finding._replace(where=places.get(finding.case, finding.case)) for finding in findings]


def _relative(path: Path, root: Path) -> str:
    return (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()


def _answer(
    suite: Suite, seen: Loading, oracle: Lines, noop: Lines, findings: Sequence[Finding], *, strict: bool
) -> Answer:
    keys = sorted({*oracle, *noop, *((case.lane.value, case.id) for case in suite.cases)})
    asked = {(case.lane.value, case.id): _asked(case) for case in suite.cases}
    rows = [_row(key, asked.get(key, 0), oracle.get(key, []), noop.get(key, []), findings) for key in keys]
    kinds = ("mistake", "broken", "impossible", "cannot fail", "leak", "skill", "unproven")
    counts: dict[str, int] = {kind.replace(" ", "_"): sum(one.kind == kind for one in findings) for kind in kinds}
    broken = {finding.case or finding.message for finding in findings if finding.spoils}
    value = {
        "cases": rows,
        "skills": seen.value,
        "checks": sum(row["checks"] for row in rows),
        "broken_cases": len(broken),
        "counts": counts,
        "findings": [{**finding._asdict(), "spoils": finding.spoils} for finding in findings],
        "sound": not broken,
    }
    bad = bool(broken) or (strict and bool(findings))
    return Answer(value, [*_table(rows), *seen.lines, *_lines(findings), _summary(value)], NOT_GOOD if bad else FINE)


def _asked(case: Case) -> int:
    """Return how many things a case looks at."""
    spec = case.spec
    return sum(map(len, (spec.checks, spec.workflow, spec.artifacts, spec.expect, spec.forbid)))


def _row(
    key: tuple[str, str],
    checks: int,
    oracle: Sequence[TrialLine],
    noop: Sequence[TrialLine],
    findings: Sequence[Finding],
) -> dict[str, Any]:
    return {
        "lane": key[0],
        "case": key[1],
        "checks": checks,
        "oracle": _outcomes(oracle),
        "noop": _outcomes(noop),
        "findings": sum(finding.case == ":".join(key) for finding in findings),
    }


def _outcomes(lines: Sequence[TrialLine]) -> dict[str, int]:
    return {outcome.value: count for outcome in Outcome if (count := sum(line.outcome is outcome for line in lines))}


def _table(rows: Sequence[dict[str, Any]]) -> list[str]:
    head = ("lane", "case", "checks", "oracle", "no-op", "findings")
    cells = []
    for row in rows:
        outcomes = [_words(row[name]) for name in ("oracle", "noop")]
        cells.append([row["lane"], row["case"], str(row["checks"]), *outcomes, str(row["findings"] or "")])
    return [*table(head, cells, right=("checks", "findings")), ""] if rows else []


def _words(outcomes: dict[str, int]) -> str:
    return ", ".join(f"{count} {word}" for word, count in outcomes.items()) or "not run"


def _lines(findings: Sequence[Finding]) -> list[str]:
    lines = []
    for finding in findings:
        what = f"{finding.check}: " if finding.check else ""
        lines.append(f"{finding.kind}: {finding.where + ': ' if finding.where else ''}{what}{finding.message}")
    return lines


def _summary(value: dict[str, Any]) -> str:
    counts = value["counts"]
    warnings = sum(counts[name] for name in ("leak", "skill", "unproven"))
    parts = [
        f"{numbers.count(len(value['cases']), 'case')}, {numbers.count(value['checks'], 'check')}",
        f"{value['broken_cases']} broken",
        f"{counts['impossible']} impossible",
        f"{counts['cannot_fail']} that cannot fail",
        numbers.count(warnings, "warning"),
    ]
    return "; ".join(parts)
