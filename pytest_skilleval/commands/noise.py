"""`skilleval noise`: how often trials of the same case disagree, within two runs and between them."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_skilleval.errors import BaselineMistake
from pytest_skilleval.reports import numbers
from pytest_skilleval.results import GroupSummary, Report
from pytest_skilleval.stats import rates

from .answer import Answer, table
from .place import add_output, place_of
from .reference import MEANING, open_run

__all__ = ["add_arguments", "run"]

EXAMPLES = """\
examples:
  skilleval noise main latest     two runs of one skill: the three rates should agree

Of two runs that measured the same thing, trials disagree as often between the runs as within each. More between them
than within means that something has changed: the skill, the provider or the world.
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("a", metavar="A", help=f"a run: {MEANING}")
    parser.add_argument("b", metavar="B", help="another run, named the same way")
    add_output(parser)


def run(arguments: Namespace) -> Answer:
    """Measure the noise."""
    place = place_of(arguments)
    one, two = (open_run(place, reference).report for reference in (arguments.a, arguments.b))
    pairs = _shared(one, two)
    if not pairs:
        raise BaselineMistake(
            f"{arguments.a} and {arguments.b} share no unchanged case; choose two runs of the same cases"
        )
    found = {
        "within_a": rates.flip_rate([(row.passed, row.n) for row, _ in pairs]),
        "within_b": rates.flip_rate([(row.passed, row.n) for _, row in pairs]),
        "between": rates.flip_rate_between([(a.passed, a.n, b.passed, b.n) for a, b in pairs]),
    }
    notes = _notes(one, two, pairs)
    value = {"a": one.run.id, "b": two.run.id, "groups": len(pairs), **found, "notes": notes}
    return Answer(value, [*_lines(one, two, found), *(f"note: {note}" for note in notes)])


def _shared(one: Report, two: Report) -> list[tuple[GroupSummary, GroupSummary]]:
    """Return the groups of both runs whose case has not changed."""
    others = {(row.lane, row.case, row.condition, row.fingerprint): row for row in two.groups}
    rows = [(row, others.get((row.lane, row.case, row.condition, row.fingerprint))) for row in one.groups]
    return [(row, other) for row, other in rows if other is not None]


def _notes(one: Report, two: Report, pairs: Sequence[tuple[GroupSummary, GroupSummary]]) -> list[str]:
    """Say what else than noise may lie between the two runs."""
    notes = []
    changed = sum(a.skill_digest != b.skill_digest for a, b in pairs)
    if changed:
        notes.append(f"in {numbers.count(changed, 'group')} the skill differs: the rate between holds its effect too")
    for word, a, b in (
        ("provider", one.run.provider.id, two.run.provider.id),
        ("model", one.run.provider.model, two.run.provider.model),
    ):
        if a != b:
            notes.append(f"the {word} differs ({a or 'default'}, {b or 'default'}): so does what is measured")
    if one.run.provider.simulated and one.run.seed == two.run.seed and one.run.provider == two.run.provider:
        notes.append(f"both are simulated with seed {one.run.seed}: the same draws, so no noise lies between them")
    return notes


def _lines(one: Report, two: Report, found: Mapping[str, Any]) -> list[str]:
    named = (("within", one.run.id, "within_a"), ("within", two.run.id, "within_b"), ("between", "both", "between"))
    rows = []
    for word, run_id, key in named:
        rate = found[key]
        interval = numbers.ci(None if rate["ci"] is None else (rate["ci"][0], rate["ci"][1]), share=True)
        rows.append([word, run_id, numbers.percent(rate["rate"]), interval, str(rate["n"])])
    unknown = any(found[key]["rate"] is None for key in found)
    lines = table(("trials", "run", "disagree", "95% interval", "groups"), rows, right=("disagree", "groups"))
    return [*lines, *(["one trial for each group shows no noise; --trials 5 does"] if unknown else [])]
