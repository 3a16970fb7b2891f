"""`skilleval merge`: shards of one measurement, or repeats of it, become one run."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from pytest_skilleval import store, verdicts
from pytest_skilleval.errors import RunFolderMistake
from pytest_skilleval.evidence import keep_tree
from pytest_skilleval.journal import Journal, is_held
from pytest_skilleval.records import ArtifactRef, FileRef, Outcome, Plan, TrialRecord
from pytest_skilleval.reports.writing import Written, write_reports
from pytest_skilleval.results import Report

from .answer import FINE, INCOMPLETE, NOT_GOOD, Answer
from .place import Place, add_output, place_of
from .reference import run_folder, settings_of
from .runfolder import write_run
from .shards import Part, Shard, unite

__all__ = ["add_arguments", "run"]

EXAMPLES = """\
examples:
  skilleval merge RUN1 RUN2 RUN3          shards: each ran other cases or conditions, as on three machines
  skilleval merge RUN1 RUN2 --repeats     the same cases again: their trials are counted together

exit status: 0 complete, 1 a report could not be written, 2 planned trials or a share are missing, 4 the runs do not fit
"""
FORMATS = ("json", "md", "html")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("runs", metavar="RUN", nargs="+", help="a run id or a run folder; two or more")
    parser.add_argument(
        "--repeats", action="store_true", help="the runs repeat the same trials: renumber them, one run after the other"
    )
    add_output(parser)


def run(arguments: Namespace) -> Answer:
    """Make one run of several."""
    place = place_of(arguments)
    folders = [run_folder(place, reference) for reference in arguments.runs]
    if running := [folder.name for folder in folders if is_held(folder)]:
        raise RunFolderMistake(f"{', '.join(running)}: still running; merge when it has ended")
    shards = [Shard.read(folder) for folder in folders]
    run_id = store.new_run_id()
    united = unite(shards, run_id, repeats=arguments.repeats)
    folder = _write(place.output, united.plan, united.parts)
    report, written = _report(place, folder)
    store.point_latest(place.output, run_id)
    missing = [line.key for line in report.trials if line.outcome is Outcome.MISSING]
    value = {
        "run": run_id,
        "path": str(folder),
        "merged": [shard.plan.run for shard in shards],
        "status": report.run.status,
        "counts": report.run.counts,
        "missing": missing,
        "reports": {name: str(path) for name, path in written.paths.items()},
        "problems": written.problems,
        "notes": list(united.plan.notes),
    }
    counts = ", ".join(f"{number} {word}" for word, number in report.run.counts.items())
    lines = [f"{run_id}: {report.run.status}, {counts}", *(f"report: {path}" for path in written.paths.values())]
    notes = [*(f"note: {note}" for note in united.plan.notes), *report.run.reasons, *written.problems]
    incomplete = bool(missing or united.lost)
    return Answer(value, lines, INCOMPLETE if incomplete else NOT_GOOD if written.problems else FINE, notes)


def _write(output: Path, plan: Plan, parts: list[Part]) -> Path:
    def fill(journal: Journal) -> None:
        for part in parts:
            _copy(part, journal)

    return write_run(output, plan, fill)


def _copy(part: Part, journal: Journal) -> None:
    """Copy what the journal of a shard holds of a trial, under its new name."""
    moves = {f"trials/{part.old.folder}": f"trials/{part.new.folder}", part.old.bundle: part.new.bundle}
    for old, new in moves.items():
        if (part.shard.folder / old).is_dir():
            keep_tree(part.shard.folder / old, journal.run_folder / new)
    names: dict[str, str | int] = {"run": journal.run, "trial": part.new.trial}
    intent, record, _ = part.entry
    for name in ("intent.json", "record.json"):
        # What could not be read in the shard is no evidence here either.
        (journal.folder(part.new) / name).unlink(missing_ok=True)
    if intent is not None:
        journal.write_intent(intent.model_copy(update=names))
    if record is not None:
        journal.folder(part.new).mkdir(parents=True, exist_ok=True)
        journal.write_record(_renamed_record(record, names, moves))


def _renamed_record(record: TrialRecord, names: dict[str, str | int], moves: dict[str, str]) -> TrialRecord:
    """Return a record with its new identity, and the new places of its files."""
    files = {name: _moved(getattr(record, name), moves) for name in ("transcript", "stdout", "stderr")}
    artifacts = tuple(_moved_artifact(artifact, moves) for artifact in record.artifacts)
    return record.model_copy(update={**names, **files, "artifacts": artifacts})


def _moved(file: FileRef | None, moves: dict[str, str]) -> FileRef | None:
    return None if file is None else file.model_copy(update={"path": _path(file.path, moves)})


def _moved_artifact(file: ArtifactRef, moves: dict[str, str]) -> ArtifactRef:
    return file.model_copy(update={"path": _path(file.path, moves)})


def _path(path: str, moves: dict[str, str]) -> str:
    for old, new in moves.items():
        if path.startswith(f"{old}/"):
            return new + path.removeprefix(old)
    return path


def _report(place: Place, folder: Path) -> tuple[Report, Written]:
    gathered = store.gather(folder)
    settings = settings_of(gathered.plan, place)
    report = verdicts.judge(gathered.plan, gathered.entries, settings, finished=store.now())
    return report, write_reports(FORMATS, report, folder)
