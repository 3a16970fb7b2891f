"""JUnit XML with one test case a group, failed only by the gate: for dashboards that turn red on any failure."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from pytest_skilleval.reports import numbers
from pytest_skilleval.reports.headline import provider_name, simulated
from pytest_skilleval.reports.plain import plain

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from pytest_skilleval.results import GroupSummary, Report, TrialLine

__all__ = ["as_junit"]

OVERALL = "overall"
"""The gate's name of the verdict over all groups."""


def as_junit(report: Report) -> str:
    """Render JUnit XML: what the gate names has failed.

    A group that could not be measured whole is an error, and one that was not measured at all is skipped.
    """
    red = dict(_red(report))
    suite = ET.Element("testsuite", name="skilleval", timestamp=report.run.started.removesuffix("Z"), hostname="")
    _properties(suite, _run_facts(report))
    lines: dict[tuple[str, str, str], list[TrialLine]] = {}
    for line in report.trials:
        lines.setdefault((line.lane, line.case, line.condition), []).append(line)
    for row in (*report.groups, *report.baseline_groups):
        own = lines.get((row.lane, row.case, row.condition), [])
        _group(suite, row, own, red.pop(f"{row.lane}:{row.case}:{row.condition}", None), report.timing)
    for name, reason in red.items():
        test = ET.SubElement(suite, "testcase", classname="skilleval.gate", name=plain(name, keep=""), time="0")
        _because(test, "failure", "gate", reason)
    for key, tag in (
        ("tests", "testcase"),
        ("failures", "testcase/failure"),
        ("errors", "testcase/error"),
        ("skipped", "testcase/skipped"),
    ):
        suite.set(key, str(len(suite.findall(tag))))
    root = ET.Element("testsuites", name="skilleval")
    root.append(suite)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=False).join(
        ('<?xml version="1.0" encoding="utf-8"?>\n', "\n")
    )


def _red(report: Report) -> list[tuple[str, str]]:
    """Return group (or `overall`) and reason of each red gate; errors and missing trials stand at their groups."""
    names = {f"{row.lane}:{row.case}:{row.condition}" for row in report.groups} | {OVERALL}
    found = []
    for text in report.gate.reasons:
        name, _, reason = text.partition(": ")
        if name in names:
            found.append((name, reason))
    return found


def _group(
    suite: ET.Element, row: GroupSummary, lines: list[TrialLine], red: str | None, timing: Mapping[str, Any]
) -> None:
    times = timing.get("trials", {})
    took = sum(float(times.get(line.key, {}).get("duration_s", 0)) for line in lines)
    name = plain(f"{row.case}:{row.condition}", keep="")
    test = ET.SubElement(suite, "testcase", classname=f"skilleval.{row.lane}", name=name, time=f"{took:.3f}")
    rate, score = row.pass_rate, row.score
    _properties(
        test,
        {
            "n": str(row.n),
            "passed": str(row.passed),
            "errors": str(row.errors),
            "missing": str(row.missing),
            "pass_rate": f"{numbers.percent(rate.rate)} {numbers.ci(rate.ci, share=True)}".strip(),
            "score": f"{numbers.score(score.mean)} {numbers.ci(score.ci)}".strip(),
        },
    )
    if red is not None:
        _because(test, "failure", "gate", red)
    broken = [line for line in lines if line.error is not None and line.outcome.value == "error"]
    if row.errors:
        kind = broken[0].error.error_class.value if broken and broken[0].error else "error"
        _because(
            test, "error", kind, "\n".join(f"{line.key}: {line.reason}" for line in broken) or f"{row.errors} errors"
        )
    elif row.missing:
        _because(test, "error", "missing", f"{numbers.count(row.missing, 'planned trial')} without a result")
    elif red is None and not row.n:
        # Without an element of its own, a group that nobody measured would count as passed.
        _because(test, "skipped", "unmeasured", f"nothing was measured: {_left_out(row)}")
    out = "\n".join(f"{line.key}: {line.outcome.value}: {line.reason}" for line in lines)
    ET.SubElement(test, "system-out").text = plain(out)


def _left_out(row: GroupSummary) -> str:
    counts = ((row.unjudged, "unjudged"), (row.not_needed, "not needed"))
    return ", ".join(f"{numbers.count(count, 'trial')} {why}" for count, why in counts if count) or "no trial"


def _because(test: ET.Element, tag: str, kind: str, reason: str) -> None:
    found = ET.SubElement(test, tag, type=kind, message=plain(reason.partition("\n")[0], keep=""))
    found.text = plain(reason)


def _properties(element: ET.Element, values: Mapping[str, str]) -> None:
    properties = ET.SubElement(element, "properties")
    for name, value in values.items():
        ET.SubElement(properties, "property", name=name, value=plain(value, keep=""))


def _run_facts(report: Report) -> dict[str, str]:
    run = report.run
    facts = {
        "run": run.id,
        "status": run.status,
        "provider": provider_name(run.provider),
        "gate": "passed" if report.gate.passed else "red",
    }
    if run.provider.simulated:
        facts["note"] = simulated(run.provider)
    return facts
