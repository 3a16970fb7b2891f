"""What a report says of tokens that were saved or checked: the warnings, and what could not be told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_skilleval.reports import numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_skilleval.results import Report

__all__ = ["token_notes", "token_warnings"]


def token_warnings(report: Report) -> list[str]:
    """Return a line for each group that costs more than its saved baseline."""
    found = report.tokens or {}
    return [_warning(row) for row in found.get("groups", ()) if row["warned"]]


def _warning(row: Mapping[str, Any]) -> str:
    saved, now = row["saved"], row["now"]
    share = f" (+{numbers.percent(row['rise'] / saved['mean'])})" if saved["mean"] else ""
    return (
        f"{row['lane']}:{row['case']}:{row['condition']} costs {_tokens(now['mean'])} tokens a trial (n={now['n']}), "
        f"{_tokens(saved['mean'])} when saved (n={saved['n']}): +{_tokens(row['rise'])}{share}, "
        f"95% interval from +{_tokens(row['lower'])}"
    )


def _tokens(value: float) -> str:
    return f"{round(value):,}"


def token_notes(report: Report) -> Iterator[str]:
    """Yield what else is to be said: what was compared or saved, and what is not known."""
    found = report.tokens
    if found is None:
        return
    if found["mode"] == "update":
        yield from _update_notes(report, found)
    elif not found["file_found"]:
        yield f"there is no {found['file']} to check against; --skilleval-tokens=update writes it"
        return
    else:
        yield from _check_notes(found)
    if found["unknown"]:
        groups = numbers.count(found["unknown"], "group")
        yield f"{groups} did not say how many tokens a trial takes: unknown, not 0"


def _update_notes(report: Report, found: Mapping[str, Any]) -> Iterator[str]:
    if report.run.status != "finished":
        yield f"{found['file']} stays as it was: the run is {report.run.status}"
    else:
        yield f"{numbers.count(found['saved'], 'group')} saved in {found['file']}; commit it"


def _check_notes(found: Mapping[str, Any]) -> Iterator[str]:
    compared = len(found["groups"])
    more = f"by {numbers.percent(found['threshold'])} and {_tokens(found['floor'])} tokens, beyond noise"
    yield (
        f"{found['warned']} of {numbers.count(compared, 'group')} cost more than in {found['file']} {more}; "
        "a warning, not a verdict"
    )
    if found["noise_unknown"]:
        yield (
            f"{numbers.count(found['noise_unknown'], 'group')} had one trial now: noise is unknown, so none is warned "
            "of; --trials 3 tells"
        )
    if found["new"]:
        yield f"{numbers.count(found['new'], 'group')} not saved yet; --skilleval-tokens=update adds them"
    if found["changed"]:
        yield f"{numbers.count(found['changed'], 'group')} not compared: the case, or what is counted, changed since"
