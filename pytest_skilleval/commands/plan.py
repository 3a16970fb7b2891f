"""`skilleval plan`: how many trials or cases a comparison needs, from the noise that a run has measured."""

from __future__ import annotations

import math
from argparse import ArgumentParser, Namespace
from typing import Any, NamedTuple

from pytest_skilleval.errors import OptionMistake, RunFolderMistake
from pytest_skilleval.reports import numbers
from pytest_skilleval.results import Report
from pytest_skilleval.stats import planning, rates
from pytest_skilleval.stats.levels import DEFAULT_LEVELS

from .answer import Answer
from .place import add_output, place_of
from .reference import MEANING, open_run

__all__ = ["add_arguments", "run"]

EXAMPLES = """\
examples:
  skilleval plan latest                 what two runs like this one can tell apart
  skilleval plan latest --detect 0.05   trials, or cases, that would find 5 points of pass rate
"""


class _Design(NamedTuple):
    """A comparison of two runs like this one, of a changed skill."""

    cases: int
    groups: int
    """Those whose agents could see a changed skill."""
    trials: float
    """Of each group; the harmonic mean where they differ, since the fewest weigh most."""
    flip: float
    measured: bool
    """Whether the flip rate is this run's own."""

    @property
    def per_case(self) -> float:
        """Conditions that are averaged for each case."""
        return self.groups / self.cases


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("run", metavar="RUN", help=MEANING)
    parser.add_argument(
        "--detect", type=float, default=0.1, metavar="D", help="change of pass rate to find, above 0 (default: 0.1)"
    )
    parser.add_argument(
        "--power",
        type=float,
        default=planning.POWER,
        metavar="P",
        help="share of comparisons to find it in (default: 0.8)",
    )
    add_output(parser)


def run(arguments: Namespace) -> Answer:
    """Plan a comparison."""
    change, power = arguments.detect, arguments.power
    if not 0 < change <= 1:
        raise OptionMistake(f"--detect {change:g}: a change of pass rate above 0 and up to 1 is needed, such as 0.1")
    if not 0.5 <= power < 1:
        raise OptionMistake(f"--power {power:g}: a share from 0.5 to below 1 is needed, such as 0.8")
    report = open_run(place_of(arguments), arguments.run).report
    design = _design(report, arguments.run)
    limits = planning.design_limits(design.cases, design.groups, max(1, math.floor(design.trials)), flip=design.flip)
    smallest = _smallest(design, power)
    trials = _trials(design, change, power)
    cases = _cases(design, change, power)
    cost = _cost(report)
    value = {
        "run": report.run.id,
        "detect": change,
        "power": power,
        "level": round(DEFAULT_LEVELS.planned, 6),
        "design": {"cases": design.cases, "groups": design.groups, "trials": round(design.trials, 2)},
        "flip_rate": {"rate": design.flip, "measured": design.measured},
        "smallest_detectable": smallest,
        "trials_needed": trials,
        "cases_needed": cases,
        "least_trials_for_group_verdicts": limits["least_trials"],
        "cost_usd_per_trial": cost,
    }
    return Answer(value, _lines(report, design, value))


def _design(report: Report, reference: str) -> _Design:
    """Return the part of a run that would decide about a changed skill.

    The agents of control conditions see no change, so more of them find nothing.

    Raises:
        RunFolderMistake: Nothing was measured.
    """
    measured = [row for row in report.groups if row.n]
    rows = [row for row in measured if (row.seen or row.skill_digest is not None) and not row.control] or measured
    if not rows:
        raise RunFolderMistake(f"{reference}: has measured nothing to plan with; run it first, or name another run")
    flip = rates.flip_rate([(row.passed, row.n) for row in rows])["rate"]
    trials = len(rows) / math.fsum(1 / row.n for row in rows)
    cases = len({(row.lane, row.case) for row in rows})
    return _Design(cases, len(rows), trials, planning.FLIP_RATE if flip is None else flip, measured=flip is not None)


def _smallest(design: _Design, power: float) -> float | None:
    """Return the smallest change that is found; None where even a complete one is not.

    The smaller of what noise allows and what the test can call at all: without any noise the test is the limit.
    """
    level = DEFAULT_LEVELS.planned
    likely = planning.detectable_change(
        design.flip, design.cases, design.trials * design.per_case, alpha=level, power=power
    )
    visible = planning.least_visible_overall(math.floor(design.trials * design.groups), level)
    return None if likely is None or visible is None else max(likely, visible)


def _trials(design: _Design, change: float, power: float) -> int | None:
    """Return the trials for each group with the cases there are; None where no number of trials is enough."""
    noise = planning.trials_needed(change, design.flip, design.cases, alpha=DEFAULT_LEVELS.planned, power=power)
    if noise is None:
        return None
    return max(math.ceil(noise / design.per_case - 1e-9), math.ceil(_least_total(change) / design.groups - 1e-9), 1)


def _cases(design: _Design, change: float, power: float) -> int | None:
    """Return the cases with the trials there are; None where no number of cases is enough."""
    each = design.trials * design.per_case
    noise = planning.cases_needed(change, design.flip, each, alpha=DEFAULT_LEVELS.planned, power=power)
    return None if noise is None else max(noise, math.ceil(_least_total(change) / each - 1e-9))


def _least_total(change: float) -> float:
    """Return the trials of one run, all groups together, below which the test cannot call a change so small."""
    return math.ceil(-math.log2(DEFAULT_LEVELS.planned)) / change


def _cost(report: Report) -> float | None:
    known = [(row.cost_usd, row.n) for row in report.groups if row.cost_usd is not None]
    trials = sum(n for _, n in known)
    return math.fsum(cost * n for cost, n in known) / trials if trials else None


def _lines(report: Report, design: _Design, value: dict[str, Any]) -> list[str]:
    rate = numbers.percent(design.flip)
    source = f"measured in {report.run.id}" if design.measured else "assumed: one trial for each group measures none"
    smallest, trials, cases = (value[key] for key in ("smallest_detectable", "trials_needed", "cases_needed"))
    change, power = _points(value["detect"]), numbers.percent(value["power"])
    each = _rounded(design.trials)
    lines = [
        f"two trials of a case disagree in {rate} of pairs ({source})",
        f"two runs like this one ({_size(design.cases, design)}, {each} trials each) "
        + (f"find a change of {_points(smallest)}" if smallest is not None else "find no change at all")
        + f" in {power} of comparisons",
        f"to find {change} in {power} of comparisons, for each of the two runs:",
        f"  with {numbers.count(design.cases, 'case')} as here: "
        + _way(trials, "trials each", trials and trials * design.groups, value),
        f"  with {each} trials each as here: "
        + _way(cases, "cases", cases and math.ceil(cases * design.per_case * design.trials), value),
        f"a single group can get a verdict of its own from {value['least_trials_for_group_verdicts']} trials on",
    ]
    if trials is not None and trials <= _MANY:
        lines.append(f"next: pytest --trials {trials}")
    return lines


_MANY = 50
"""More trials than this are no plan: cases are added."""


def _way(number: int | None, word: str, total: int | None, value: dict[str, Any]) -> str:
    if number is None or total is None:
        return "no number is enough"
    cost = value["cost_usd_per_trial"]
    price = "" if cost is None else f", about {numbers.money(cost * total)}"
    return f"{number} {word} ({numbers.count(total, 'trial')}{price})"


def _size(cases: int, design: _Design) -> str:
    return numbers.count(cases, "case") + (f" in {design.groups} groups" if design.groups != design.cases else "")


def _points(change: float) -> str:
    return f"{100 * change:.3g} points of pass rate"


def _rounded(trials: float) -> str:
    return f"{trials:.3g}"
