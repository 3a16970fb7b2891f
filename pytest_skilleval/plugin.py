"""The hooks and fixtures pytest sees; each is a few lines, then a call downward.

Nothing heavy is imported here: a session without evals pays for reading this file and the options, nothing else.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from pytest_skilleval import discovery, options, tally
from pytest_skilleval.errors import UserMistake
from pytest_skilleval.memory import collector_held
from pytest_skilleval.tally import IDLE_ID, REPORT_KEY

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_skilleval.collection import Evals
    from pytest_skilleval.comparison import Baseline
    from pytest_skilleval.controller import Controller
    from pytest_skilleval.options import Settings
    from pytest_skilleval.records import ExpectedGroup
    from pytest_skilleval.reports.events import EventStream
    from pytest_skilleval.tokens import Snapshot
    from pytest_skilleval.trial import Trial
    from pytest_skilleval.workspace.home import Home

SETTINGS = options.SETTINGS
COLLECTED: pytest.StashKey[Mapping[tuple[str, str], int]] = pytest.StashKey()
EXPECTED: pytest.StashKey[Sequence[ExpectedGroup]] = pytest.StashKey()
BASELINE: pytest.StashKey[Baseline | None] = pytest.StashKey()
SNAPSHOT: pytest.StashKey[Snapshot | None] = pytest.StashKey()
CONTROLLER: pytest.StashKey[Controller | None] = pytest.StashKey()
TALLY: pytest.StashKey[tally.Tally] = pytest.StashKey()
HANDOVER: pytest.StashKey[dict[str, Any]] = pytest.StashKey()
HELD: pytest.StashKey[ExitStack] = pytest.StashKey()
MISTAKE: pytest.StashKey[UserMistake] = pytest.StashKey()
STREAMS: pytest.StashKey[list[EventStream]] = pytest.StashKey()
STOPPING = "skilleval-stopping"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flags and ini keys."""
    options.add_options(parser)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Add the hooks that others may implement."""
    from pytest_skilleval import hookspecs

    pluginmanager.add_hookspecs(hookspecs)


def pytest_configure(config: pytest.Config) -> None:
    """Read the settings, and agree with the other processes of the session on its run."""
    config.addinivalue_line(
        "markers",
        "skilleval(lane, case, skill, category, conditions, min_pass_rate, budget): an eval in Python; "
        "it takes the `skilleval` fixture",
    )
    settings = config.stash[SETTINGS] = _usage(options.read_settings, config)
    handed = getattr(config, "workerinput", {}).get(REPORT_KEY)
    config.stash[HANDOVER] = json.loads(handed) if handed else _new_run()
    if (trials := config.stash[HANDOVER].get("trials")) is not None:
        settings = config.stash[SETTINGS] = replace(settings, trials=trials)  # a resumed run's own
    config.stash[TALLY] = tally.Tally()
    config.pluginmanager.register(config.stash[TALLY], "skilleval-tally")
    _stream_events(config, settings)
    if settings.selects_evals and config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        # `testpaths` names the ordinary tests; a flag that selects evals means the folders that hold evals.
        config.args = [str(path) for path in settings.paths if path.is_dir()] or config.args


def _stream_events(config: pytest.Config, settings: Settings) -> None:
    """Write events while the run goes on, where `--skilleval-report jsonl=PATH` asks for them."""
    places = [text.removeprefix("jsonl=") for text in settings.reports if text.startswith("jsonl=")]
    if places and not is_worker(config) and not config.option.collectonly:
        from pathlib import Path

        from pytest_skilleval.reports.events import EventStream

        folder = settings.output / config.stash[HANDOVER]["run"]
        config.stash[STREAMS] = [_usage(EventStream, Path(place), folder) for place in places]
        for stream in config.stash[STREAMS]:
            config.pluginmanager.register(stream)


def _new_run() -> dict[str, Any]:
    """Return a run id that sorts by time and is unique, and a token that tells our folder from a neighbour's."""
    run = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{os.urandom(2).hex()}"
    return {"run": run, "token": os.urandom(8).hex(), "began": time.monotonic(), "info": None} | {
        "decisions": [],
        "scheduled": False,
    }


def _usage(function: Any, *args: Any) -> Any:
    """Call a function; a user's mistake becomes pytest's usage error, exit status 4."""
    try:
        return function(*args)
    except UserMistake as mistake:
        raise pytest.UsageError(str(mistake)) from None


def _refuse(mistake: UserMistake) -> None:
    raise mistake


def _usage_of_all(config: pytest.Config, function: Any, *args: Any) -> Any:
    """Do the same, and hand a mistake that a worker sees to the controller: see `pytest_testnodedown`."""
    try:
        return _usage(function, *args)
    except pytest.UsageError as mistake:
        if is_worker(config):
            config.workeroutput[REPORT_KEY] = str(mistake)  # type: ignore[attr-defined] # xdist's
        raise


def is_worker(config: pytest.Config) -> bool:
    """Tell whether this process is an xdist worker."""
    return hasattr(config, "workerinput")


# ---------------------------------------------------------------------------------------------------- collection


def evals_of(config: pytest.Config) -> Evals:
    """Return the evals of this process; the first call imports what they need."""
    from pytest_skilleval import outcome
    from pytest_skilleval.collection import EVALS, Evals
    from pytest_skilleval.workbench import Workbench

    if EVALS not in config.stash:
        handed = config.stash[HANDOVER]
        answers = config.hook.pytest_skilleval_providers(config=config)
        conditions = config.hook.pytest_skilleval_conditions(config=config)
        bench = _usage(
            lambda: Workbench(
                config.stash[SETTINGS],
                run=handed["run"],
                token=handed["token"],
                worker=getattr(config, "workerinput", {}).get("workerid", "main"),
                info=_info(handed["info"]),
                began=handed["began"],
                providers={name: make for answer in reversed(answers) for name, make in answer.items()},
                conditions=[one for answer in reversed(conditions) for one in answer],
            )
        )
        bench.scheduled = handed["scheduled"]
        bench.decisions = {tuple(group): most for group, most in handed["decisions"]}
        config.stash[EVALS] = Evals(bench, discovery.named_places(config))
        config.pluginmanager.register(outcome.Trials(config, config.stash[EVALS]), "skilleval-trials")
        _show_progress(config)
    return config.stash[EVALS]


def _show_progress(config: pytest.Config) -> None:
    """Show how far the run is, in the process that sees all its trials."""
    plugins, settings = config.pluginmanager, config.stash[SETTINGS]
    if not is_worker(config) and not config.option.collectonly and not plugins.hasplugin("skilleval-progress"):
        from pytest_skilleval.progress import Progress

        folder = settings.output / config.stash[HANDOVER]["run"]
        plugins.register(Progress(config, folder, settings), "skilleval-progress")


def _info(handed: Any) -> Any:
    from pytest_skilleval.records import ProviderInfo

    return ProviderInfo.model_validate(handed) if handed else None


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect case files, and no other YAML or JSON."""
    config = parent.config
    named = parent.session.isinitpath(file_path)
    if not discovery.is_case_file(file_path, config.stash[SETTINGS], named=named):
        return None
    from pytest_skilleval.collection import CaseFile

    evals_of(config)
    collector: pytest.Collector = CaseFile.from_parent(parent, path=file_path)
    return collector


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize Python cases over condition and trial."""
    if "skilleval" in metafunc.fixturenames and metafunc.definition.get_closest_marker("skilleval"):
        from pytest_skilleval import pythoncases

        try:
            pythoncases.parametrize(metafunc, evals_of(metafunc.config))
        except UserMistake as mistake:
            # Raised here it would be a traceback among others; it ends the session once all is collected.
            metafunc.config.stash.setdefault(MISTAKE, mistake)
            metafunc.parametrize("skilleval", [])


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Read all case files before any worker or agent starts: a mistake costs nothing."""
    config = session.config
    if config.stash[SETTINGS].resume is not None and not is_worker(config):
        _take_up(config)
    paths = [] if is_worker(config) else list(discovery.case_files(config))
    if paths:
        from pytest_skilleval import preflight

        _hold_collector(config)
        config.stash[HANDOVER]["info"] = _usage(preflight.preflight, evals_of(config), paths)
        _plan_to_stop(config)
    if not is_worker(config):
        config.stash[HANDOVER]["scheduled"] = _expects_evals(config, paths) and _schedules(config)
        _open_saved(config)


def _open_saved(config: pytest.Config) -> None:
    """Read what the run will be held against: its baseline, and the tokens that were saved."""
    settings = config.stash[SETTINGS]
    if settings.compare_baseline is not None:
        from pytest_skilleval import controller

        found = _usage(controller.open_baseline, settings, evals_of(config).bench.info)
        config.stash[BASELINE] = found
        config.stash[HANDOVER]["baseline"] = {"path": found.path, "digest": found.path_digest}
    if settings.tokens is not None:
        from pytest_skilleval import tokens

        config.stash[SNAPSHOT] = _usage(tokens.read_snapshot, settings.rootpath)


def _expects_evals(config: pytest.Config, paths: Sequence[Path]) -> bool:
    """Tell whether there are case files, or a flag that only evals in Python can mean; workers alone collect those."""
    return bool(paths) or config.stash[SETTINGS].selects_evals or config.getoption("skilleval_trials") is not None


def _schedules(config: pytest.Config) -> bool:
    """Tell whether the plugin's own scheduler hands out the trials: under xdist, unless the user chose another."""
    if not config.pluginmanager.hasplugin("dsession"):
        return False
    words = [str(word) for word in (*config.invocation_params.args, *config.getini("addopts"))]
    words += os.environ.get("PYTEST_ADDOPTS", "").split()
    others = config.hook.pytest_xdist_make_scheduler.get_hookimpls()
    foreign = [one for one in others if one.plugin_name not in ("dsession", "skilleval")]
    return not foreign and not any(word == "--dist" or word.startswith("--dist=") for word in words)


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_make_scheduler(config: pytest.Config) -> Any:
    """Hand out trials by caps and expected durations."""
    handed = config.stash[HANDOVER]
    if not handed["scheduled"]:
        return None
    from xdist.workermanage import parse_tx_spec_config  # type: ignore[import-untyped] # xdist ships no types

    from pytest_skilleval import controller

    bench = evals_of(config).bench
    return controller.make_scheduler(
        config, len(parse_tx_spec_config(config)), config.stash[SETTINGS], bench.folder, paid=bench.provider.paid
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: list[str]) -> None:
    """Keep the idle item out of every count; show progress where a run has begun."""
    if ids and ids[-1] == IDLE_ID:
        ids.pop()
    config = node.config
    if (config.stash[SETTINGS].output / config.stash[HANDOVER]["run"]).is_dir():
        _show_progress(config)


def _plan_to_stop(config: pytest.Config) -> None:
    """Work out when each gate is decided, where trials that cannot change it are to be left out."""
    settings = config.stash[SETTINGS]
    if settings.stop == "never":
        return
    from pytest_skilleval import preflight, verdicts

    bench = evals_of(config).bench
    floors = preflight.floors(evals_of(config))
    bench.decisions, notes = verdicts.decisions(floors, settings.trials)
    bench.notes.update(dict.fromkeys(notes))
    config.stash[HANDOVER]["decisions"] = list(bench.decisions.items())


def _take_up(config: pytest.Config) -> None:
    """Work on an earlier run instead of a new one."""
    from pytest_skilleval import preflight

    run, descriptor, settings = _usage(preflight.take_up, config.stash[SETTINGS])
    config.stash[SETTINGS] = settings
    config.stash[HANDOVER] |= {"run": run, "trials": settings.trials}
    for stream in config.stash.get(STREAMS, []):
        stream.folder = settings.output / run
    config.add_cleanup(lambda: os.close(descriptor))


def _hold_collector(config: pytest.Config) -> None:
    """Read and collect without garbage collection, until the items are there: cases stay for the whole session."""
    if HELD not in config.stash:
        config.stash[HELD] = ExitStack()
        config.stash[HELD].enter_context(collector_held())
        config.add_cleanup(config.stash[HELD].close)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, Any, Any]:
    """Let the garbage collector go when everything is collected."""
    config = session.config
    if config.stash[HANDOVER]["info"] is not None:
        _hold_collector(config)
    result = yield
    if HELD in config.stash:
        config.stash[HELD].close()
    return result


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say what will run and what it could not tell, before the first agent starts."""
    if is_worker(config) or config.stash[HANDOVER]["info"] is None:
        return []
    from pytest_skilleval import preflight
    from pytest_skilleval.reports import opening

    evals = evals_of(config)
    return opening.header_lines(
        config.stash[SETTINGS],
        evals.bench.info,
        preflight.groups(evals),
        config.stash.get(BASELINE, None),
        preflight.sides(evals),
    )


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Hand the run to an xdist worker."""
    node.workerinput[REPORT_KEY] = json.dumps(node.config.stash[HANDOVER])


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Make Python cases known, and leave ordinary tests out when a flag selects evals."""
    settings = config.stash[SETTINGS]
    if MISTAKE in config.stash:
        items.clear()
        _usage_of_all(config, _refuse, config.stash[MISTAKE])
    if settings.selects_evals or any(item.get_closest_marker("skilleval") for item in items):
        from pytest_skilleval import preflight

        try:
            _usage_of_all(config, preflight.select, config, items, settings)
        except pytest.UsageError:
            items.clear()  # pytest ends a collection also after a mistake: no run is to begin there
            raise


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_testnodedown(node: Any) -> None:
    """End the session with a mistake that only workers could see."""
    mistake = getattr(node, "workeroutput", {}).get(REPORT_KEY)
    if mistake:
        raise pytest.UsageError(mistake)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Take the run folder and write the plan, before the first trial."""
    if any(item.get_closest_marker("skilleval") for item in session.items):
        from pytest_skilleval import preflight

        if session.config.option.collectonly:
            session.config.stash[COLLECTED] = preflight.planned(session.items)
            session.config.stash[EXPECTED] = preflight.expected(session.items)
        baseline = session.config.stash[HANDOVER].get("baseline")
        _usage_of_all(session.config, preflight.claim, session, evals_of(session.config), baseline)
    if is_worker(session.config) and session.config.stash[HANDOVER]["scheduled"]:
        evals_of(session.config)
        from pytest_skilleval import outcome

        # A scheduled worker's collection ends with the idle item (see scheduler), before xdist sends it.
        session.items.append(outcome.Idle.from_parent(session, name="idle", nodeid=IDLE_ID))
        outcome.pass_over_idle(session.config)


# ------------------------------------------------------------------------------------------------------ fixtures


@pytest.fixture
def skilleval(request: pytest.FixtureRequest) -> Iterator[Trial]:
    """The trial: `run`, `score`, `workspace`, `home`, `condition`, `trial`."""
    from pytest_skilleval.collection import eval_item
    from pytest_skilleval.trial import Trial, TrialErrored

    work = eval_item(request.node)
    if work is None:
        pytest.fail("the `skilleval` fixture needs @pytest.mark.skilleval on its test function", pytrace=False)
    bench = evals_of(request.config).bench
    bench.listen()
    try:
        trial = Trial(bench, work.case, work.condition, work.trial)
    except TrialErrored as error:
        pytest.fail(str(error), pytrace=False)
    yield trial
    trial.close()


@pytest.fixture
def skilleval_home(request: pytest.FixtureRequest) -> Iterator[Home]:
    """An isolated home for any test: HOME, XDG_*, TMPDIR, config homes, and an allow-listed environment."""
    from pytest_skilleval.collection import eval_item
    from pytest_skilleval.workspace.home import lend_home

    if eval_item(request.node) is not None:
        yield request.getfixturevalue("skilleval").place
        return
    with lend_home(request.config.rootpath, request.node.nodeid, dict(os.environ)) as home:
        yield home


@pytest.fixture
def skilleval_workspace(skilleval_home: Home) -> Path:
    """The working directory of the isolated home, a git repository of its own."""
    return skilleval_home.work


# ------------------------------------------------------------------------------------------------------- running


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.CollectReport | pytest.TestReport) -> Any:
    """Show a failed trial as missed where one trial is no test, and one that nothing could decide as unjudged."""
    return tally.status(report)


# ------------------------------------------------------------------------------------------------------ the ending


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(crashitem: str, report: pytest.TestReport, sched: Any) -> None:
    """Settle the trial of a worker that died: the journal goes before what xdist says."""
    config = sched.config
    folder = config.stash[SETTINGS].output / config.stash[HANDOVER]["run"]
    if folder.is_dir():
        from pytest_skilleval import outcome

        reported, again = crashitem in config.stash[TALLY].home, outcome.comes_again(sched, crashitem)
        outcome.after_death(folder, report, config.stash[SETTINGS], reported=reported, again=again)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Take signals in good order meanwhile; show each red gate as a test report once all trials are home."""
    _be_stoppable(session.config)
    result = yield
    controller = None if is_worker(session.config) else controller_of(session.config)
    for report in controller.gate_reports() if controller else ():
        if report.when == "setup":
            session.config.hook.pytest_runtest_logstart(nodeid=report.nodeid, location=report.location)
        session.config.hook.pytest_runtest_logreport(report=report)
    return result


def _be_stoppable(config: pytest.Config) -> None:
    """Let a signal end the session in good order, where there may be evals."""
    plugins = config.pluginmanager
    if is_worker(config) or not (plugins.hasplugin("skilleval-trials") or plugins.hasplugin("dsession")):
        return
    from pytest_skilleval.interrupts import Stopping

    stopping = Stopping(config, config.stash[SETTINGS].output / config.stash[HANDOVER]["run"])
    plugins.register(stopping, STOPPING)
    stopping.start()


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None]:
    """Judge the run, write the reports and set the exit status.

    The innermost wrapper: xdist's workers are gone by then, and the terminal's summary is still to come.
    """
    config = session.config
    stopping: Any = config.pluginmanager.get_plugin(STOPPING)
    _foretell(session)
    try:
        yield
    except KeyboardInterrupt:
        if stopping is None:
            raise
        session.exitstatus = pytest.ExitCode.INTERRUPTED  # others' endings are cut off; the reports are written
    if is_worker(config):
        return
    if stopping is not None:
        stopping.shield()  # before the imports of judging, which take a moment
    if (controller := controller_of(config)) is not None:
        controller.publish()
        controller.announce(config)
        status = controller.exit_status(int(session.exitstatus), red=config.stash[TALLY].red)
        session.exitstatus = status if stopping is None else stopping.exit_status or status
    elif config.stash[TALLY].home:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED  # what ran has left no trace: see the summary
    elif session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and _other_shards(config):
        session.exitstatus = pytest.ExitCode.OK  # with few cases a share may be empty: no reason for a red CI job


@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Write the reports of a session whose ending was cut off, before its turn came, by a further Ctrl-C."""
    stopping: Any = config.pluginmanager.get_plugin(STOPPING)
    if stopping is None or not stopping.pressed_again:
        return
    stopping.shield()
    controller = controller_of(config)
    if controller is not None and not controller.paths:
        controller.publish()


def _other_shards(config: pytest.Config) -> set[int]:
    """Return the shares that hold all the cases there are, where the one that was asked for holds none."""
    settings = config.stash[SETTINGS]
    if settings.shard is None or config.stash[HANDOVER]["info"] is None:
        return set()
    held = evals_of(config).shards_with_cases
    return set() if settings.shard[0] in held else held


def _why_nothing(config: pytest.Config) -> str | None:
    """Return which flag leaves nothing of the case files that there are."""
    return None if config.stash[HANDOVER]["info"] is None else evals_of(config).why_nothing()


def _foretell(session: pytest.Session) -> None:
    """Set the exit status of a run that is judged: other plugins write it into reports of their own."""
    config = session.config
    controller = config.stash.get(CONTROLLER, None)
    if controller is not None and controller.report is not None:
        session.exitstatus = controller.exit_status(int(session.exitstatus), red=config.stash[TALLY].red)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the closing table, or under `--collect-only` the plan."""
    if is_worker(config):
        return  # pytest asks there too, where nobody reads it
    controller = controller_of(config)
    if controller is not None:
        from pytest_skilleval.reports import closing

        closing.write(terminalreporter, controller.judge(), controller.paths, controller.problems)
    elif config.stash[TALLY].home:
        folder = config.stash[SETTINGS].output / config.stash[HANDOVER]["run"]
        terminalreporter.write_line(f"{folder}: the run folder is gone, and with it every result", red=True)
    elif others := _other_shards(config):
        where = ", ".join(map(str, sorted(others)))
        terminalreporter.write_line(f"skilleval: this share holds no case; they are in share {where}")
    elif reason := _why_nothing(config):
        terminalreporter.write_line(f"skilleval: {reason}")
    elif config.option.collectonly and COLLECTED in config.stash:
        from pytest_skilleval.reports import opening

        for line in (*opening.plan_lines(config.stash[COLLECTED]), *_forecast(config)):
            terminalreporter.write_line(line)


def _forecast(config: pytest.Config) -> list[str]:
    """Return what the collected trials will take."""
    from pytest_skilleval.reports.forecast import forecast

    provider = _usage(lambda: evals_of(config).bench.provider)
    return forecast(config.stash[SETTINGS], config.stash[EXPECTED], provider.id, paid=provider.paid)


def controller_of(config: pytest.Config) -> Controller | None:
    """Return the controller of this session's run, or None when it had no evals."""
    handed = config.stash[HANDOVER]
    if not (config.stash[SETTINGS].output / handed["run"]).is_dir():
        return None
    from pytest_skilleval.controller import open_controller

    if CONTROLLER not in config.stash:
        config.stash[CONTROLLER] = open_controller(
            config.stash[SETTINGS],
            handed["run"],
            handed["token"],
            config.stash.get(BASELINE, None),
            config.stash.get(SNAPSHOT, None),
        )
    return config.stash[CONTROLLER]
