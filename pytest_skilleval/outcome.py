"""A trial's record as pytest sees it: what its test raises, and what its report says and shows."""

from __future__ import annotations

import contextlib
import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from pytest_skilleval.errors import ErrorClass
from pytest_skilleval.interrupts import shorten
from pytest_skilleval.journal import Entry, Journal, read_plan
from pytest_skilleval.options import SETTINGS
from pytest_skilleval.records import Outcome, PlannedTrial, ProviderInfo, TrialError, TrialRecord, TrialTiming
from pytest_skilleval.tally import IDLE_ID, REPORT_KEY
from pytest_skilleval.trial import Trial, TrialErrored

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path

    from pytest_skilleval.collection import Evals
    from pytest_skilleval.options import Settings
    from pytest_skilleval.workbench import Workbench

__all__ = ["RECORD", "Idle", "Trials", "after_death", "attach", "comes_again", "pass_over_idle", "settle", "spare"]

RECORD: pytest.StashKey[TrialRecord] = pytest.StashKey()
_SETTLED: pytest.StashKey[bool] = pytest.StashKey()


class Idle(pytest.Item):
    """What a worker waits on between two trials (see scheduler); it never runs."""

    def runtest(self) -> None:
        """Do nothing."""


def pass_over_idle(config: pytest.Config) -> None:
    """Call nobody for the idle item: no start, no report, and no plugin that wraps the protocol takes it for a test.

    A monitor gets the list of what pluggy is about to call, a copy that is made for this one call.
    """

    def before(name: str, implementations: Any, arguments: Mapping[str, Any]) -> None:
        if name == "pytest_runtest_protocol" and arguments["item"].nodeid == IDLE_ID:
            implementations.clear()

    config.add_cleanup(config.pluginmanager.add_hookcall_monitoring(before, lambda *_: None))


def spare(item: pytest.Item, trial: Trial) -> None:
    """Leave a trial out that is not to start, with the reason in its record.

    Raises:
        pytest.skip.Exception: It is left out.
    """
    reason = trial.bench.halts.reason(trial.id, trial.bench.journal)
    if reason is not None:
        item.stash[RECORD] = trial.leave_out(*reason)
        pytest.skip(reason[1])


def settle(item: pytest.Item, trial: Trial, error: BaseException | None) -> None:
    """Write the trial's record, then raise what its outcome means.

    Raises:
        AssertionError: A data case's agent did badly; IDEs and reports know a failure by this very class.
        TrialErrored: The trial could not be measured.
        pytest.skip.Exception: Nothing could decide it.
        BaseException: What a Python case raised.
    """
    # After sys.exit() in a test pytest goes on, as after any other exception: that is no interrupt.
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Exit":
        assert error is not None  # noqa: S101 - for the type checker
        raise error  # an interrupted trial has no outcome: it is missing, and runs again on resume
    record = item.stash[RECORD] = trial.settle(error)
    item.config.hook.pytest_skilleval_trial_finished(config=item.config, record=record)
    if error is not None and not trial.case.python:
        raise TrialErrored(f"{record.id.key}: {record.reason}") from error
    if error is not None:
        raise error
    if record.outcome is Outcome.FAILED:
        raise AssertionError(_failure_text(record))
    if record.outcome is Outcome.UNJUDGED:
        pytest.skip(record.reason)
    if record.outcome is Outcome.ERROR:
        kind = record.error.error_class.value if record.error else "internal"
        raise TrialErrored(f"{record.id.key}: error: {kind}: {record.reason}")


def settle_skipped(bench: Workbench, item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Settle a trial that a skip mark, or a fixture of the user's, has left out before its test function began."""
    from pytest_skilleval.collection import eval_item  # noqa: PLC0415 - it imports this package's heavy part

    work = eval_item(item)
    if work is None or call.when != "setup" or call.excinfo is None or item.stash.get(_SETTLED, False):
        return
    if not isinstance(call.excinfo.value, pytest.skip.Exception):
        return
    with contextlib.suppress(TrialErrored):  # its intent cannot be written: it is missing
        trial = getattr(item, "funcargs", {}).get("skilleval")
        trial = trial or Trial(bench, work.case, work.condition, work.trial)
        record = item.stash[RECORD] = trial.settle(call.excinfo.value)
        _put(report, record, item.config.stash[SETTINGS])


def _failure_text(record: TrialRecord) -> str:
    lines = [f"{record.id.key}: {record.reason}"]
    lines += [f"  {check.id} ({check.kind}): {check.reason}" for check in record.checks if check.passed is False]
    if record.score is not None:
        parts = (f"{part.id} {part.value:.2f}" for part in record.score.components if part.value is not None)
        lines.append(f"  score {record.score.total:.3f}: {', '.join(parts)}")
    return "\n".join(lines)


def attach(item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport) -> None:
    """Put a short copy of the record on the report of the call phase."""
    record = item.stash.get(RECORD, None)
    if record is not None and call.when == "call":
        _put(report, record, item.config.stash[SETTINGS])


def _put(report: pytest.TestReport, record: TrialRecord, settings: Settings) -> None:
    short = {
        "key": record.id.key,
        "outcome": record.outcome.value,
        "control": record.control,
        "seconds": round(record.timing.duration_s, 3),
        "tokens": _total(record),
        "cost_usd": record.cost_usd,
        "error": record.error.error_class.value if record.error else None,
        "resource": f"provider:{record.provider.id}",
        "rate_limited": record.timing.rate_limited,
        "missed": is_missed(record, settings),
    }
    text = json.dumps(short, ensure_ascii=True)
    setattr(report, REPORT_KEY, text)
    report.user_properties.append((REPORT_KEY, text))


def comes_again(sched: Any, nodeid: str) -> bool:
    """Tell whether a scheduler hands the item of a dead worker out once more; those by scope and file do."""
    units = [*getattr(sched, "workqueue", {}).values()]
    for assigned in getattr(sched, "assigned_work", {}).values():
        units += assigned.values()
    return any(unit.get(nodeid) is False for unit in units)


def after_death(
    folder: Path, report: pytest.TestReport, settings: Settings, *, reported: bool, again: bool = False
) -> None:
    """Settle the trial of a worker that died, and let xdist's report of the crash say what the journal says.

    A worker may die between the record and the report of a trial: then the trial has its result.

    Args:
        folder: The run folder.
        report: Of the crash.
        settings: What the user asked for.
        reported: Whether the trial's own report came home.
        again: Whether another worker is given the item; it runs a trial that the dead one had not begun, and no other.

    Raises:
        OSError: The record could not be written; the trial is missing then.
    """
    plan = read_plan(folder)
    planned = next((trial for trial in plan.trials if trial.nodeid == report.nodeid), None)
    if planned is None:
        return  # an ordinary test
    journal = Journal(folder, plan.run)
    entry = journal.read(planned.id)
    attempt = entry.intent.attempt if entry.intent else 1
    record = entry.record
    if record is None and again and (entry.intent is None or entry.intent.worker != report.node.gateway.id):
        report.when, report.outcome, report.longrepr = "teardown", "passed", None  # its report is still to come
        return
    if record is None or record.timing.attempt < attempt:
        record = _died(plan.run, plan.provider, planned, entry)
        journal.write_record(record)
    _put(report, record, settings)
    passed = reported or record.outcome is Outcome.PASSED
    report.when = "teardown" if reported else "call"
    report.outcome = "passed" if passed else "failed"
    report.longrepr = None if passed else f"{record.id.key}: {record.reason}"


def _died(run: str, provider: ProviderInfo, planned: PlannedTrial, entry: Entry) -> TrialRecord:
    intent = entry.intent
    message = (
        f"its worker {intent.worker} (process {intent.pid}) died"
        if intent
        else "its worker died before the trial began"
    )
    return TrialRecord(
        run=run,
        lane=planned.lane,
        case=planned.case,
        condition=planned.condition,
        trial=planned.trial,
        outcome=Outcome.ERROR,
        reason=message,
        control=planned.control,
        category=planned.category,
        skill=planned.skill,
        fingerprint=planned.fingerprint,
        provider=provider,
        error=TrialError(error_class=ErrorClass.WORKER_DIED, message=message),
        timing=TrialTiming(started=intent.started, worker=intent.worker, pid=intent.pid, attempt=intent.attempt)
        if intent
        else TrialTiming(),
    )


def is_missed(record: TrialRecord, settings: Settings) -> bool:
    """Tell whether a failed trial is shown as missed: in a control, and where many trials are a measurement."""
    if record.outcome is not Outcome.FAILED:
        return False
    if record.control:
        return True
    return not (settings.gate == "trials" or (settings.gate == "auto" and settings.trials == 1))


def _total(record: TrialRecord) -> int | None:
    tokens = record.tokens
    if tokens is None or (tokens.input is None and tokens.output is None):
        return None
    return (tokens.input or 0) + (tokens.output or 0)


class Trials:
    """The hooks around running trials; registered with the first case, so that other sessions never call them."""

    def __init__(self, config: pytest.Config, evals: Evals) -> None:
        self.config = config
        self.evals = evals

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Pass over a trial that ended its worker: the controller settles it, and it may end this worker, too."""
        if not self._ended_a_worker(item):
            return None
        from _pytest.runner import runtestprotocol  # noqa: PLC0415 - without reports, as plugins that rerun tests call it

        item.stash[_SETTLED] = True
        runtestprotocol(item, log=False, nextitem=nextitem)
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Set nothing up for such a trial."""
        if item.stash.get(_SETTLED, False):
            pytest.skip("its worker died")

    def _ended_a_worker(self, item: pytest.Item) -> bool:
        """Tell whether another worker of this session began a trial and gave it no result."""
        from pytest_skilleval.collection import eval_item  # noqa: PLC0415 - it imports this package's heavy part

        work = eval_item(item)
        if work is None or not hasattr(self.config, "workerinput"):
            return False
        journal = self.evals.bench.journal
        if not journal.folder(work.id).exists():
            return False
        intent, record, _ = journal.read(work.id)
        if intent is None or (intent.session, intent.pid == os.getpid()) != (self.evals.bench.token, False):
            return False
        if record is None or record.timing.attempt < intent.attempt:
            return True
        return record.error is not None and record.error.error_class is ErrorClass.WORKER_DIED

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> Generator[None, object, object]:
        """Write the trial's record before its test function returns."""
        trial: Any = pyfuncitem.funcargs.get("skilleval")
        if trial is None:
            return (yield)
        spare(pyfuncitem, trial)
        error = None
        try:
            yield
        except BaseException as caught:  # noqa: BLE001 - whatever ended the trial belongs into its record
            error = caught
        settle(pyfuncitem, trial, error)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put a short copy of the record on the report: one ASCII JSON string, since only plain types travel."""
        report = yield
        settle_skipped(self.evals.bench, item, call, report)
        attach(item, call, report)
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Let an interrupt take effect at once."""
        self.evals.bench.interrupted()
        shorten(excinfo, self.config)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Stop the fork server and remove this process's folders; a worker is not given the time to do it later.

        The last of all: after an interrupt pytest tears down the trial in this hook, and until then it has its lease.
        """
        self.evals.bench.close()

    def pytest_unconfigure(self) -> None:
        """Do the same where the session came to no proper end."""
        self.evals.bench.close()
