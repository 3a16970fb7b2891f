"""Flags and ini keys, side by side, read once into Settings; the flag wins."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pytest

from pytest_skilleval.errors import OptionMistake

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["FLAGS", "SETTINGS", "Flag", "Settings", "add_options", "read_settings"]

Gate = Literal["auto", "trials", "regression", "never"]
LANES = ("prompt", "execution", "dogfood")
REPORTS = ("json", "md", "html")
MOST_TRIALS = 100_000
"""Of each case and condition: each is an item of pytest, so that a slip of the finger would fill the memory."""


class Flag(NamedTuple):
    """One setting: its flag, its ini key (the same name) and its help."""

    name: str
    """Without dashes; the ini key has underscores."""
    help: str
    default: Any
    many: bool = False
    """Whether the flag may be given more than once (the ini key is then a list)."""
    kind: Callable[[str], Any] = str
    choices: tuple[str, ...] | None = None
    optional_value: str | None = None
    """What a flag without a value means."""
    short: str | None = None
    """An unprefixed name that is offered too, unless another plugin owns it."""
    metavar: str | None = None

    @property
    def ini(self) -> str:
        """The ini key."""
        return self.name.replace("-", "_")


FLAGS: tuple[Flag, ...] = (
    Flag(
        "skilleval-trials",
        "Independent trials for each case and condition (default: 1)",
        1,
        kind=int,
        short="trials",
        metavar="N",
    ),
    Flag(
        "skilleval-compare-baseline",
        "Compare with REF: a report.json, a run folder, a run id, a blessed name or 'latest'. Read and checked before "
        "the first agent (default: none)",
        None,
        short="compare-baseline",
        metavar="REF",
    ),
    Flag(
        "skilleval-lane",
        "Run only this lane: prompt, execution, dogfood or all. Repeatable (default: all)",
        (),
        many=True,
        choices=(*LANES, "all"),
    ),
    Flag(
        "skilleval-case",
        "Run only cases whose id matches this glob. Repeatable (default: all)",
        (),
        many=True,
        metavar="GLOB",
    ),
    Flag(
        "skilleval-condition",
        "Run only this condition; 'all' for those of the case, else all four. Repeatable (default: all)",
        (),
        many=True,
        metavar="C",
    ),
    Flag(
        "skilleval-provider",
        "Who answers: stub, oracle, noop, replay, claude, codex, command:NAME or chat (default: stub, a simulation)",
        "stub",
        metavar="P",
    ),
    Flag(
        "skilleval-model", "Model, passed to the provider and recorded (default: the provider's own)", None, metavar="M"
    ),
    Flag(
        "skilleval-effort",
        "Reasoning effort, passed to the provider and recorded (default: the provider's own)",
        None,
        metavar="E",
    ),
    Flag(
        "skilleval-skills",
        "Folder that holds the skills under test. Repeatable (default: skills, .claude/skills, .agents/skills)",
        ("skills", ".claude/skills", ".agents/skills"),
        many=True,
        metavar="DIR",
    ),
    Flag(
        "skilleval-stale",
        "Where the stale skill comes from: a folder or git:REV (default: the case's, else the skill's previous commit)",
        None,
        metavar="REF",
    ),
    Flag(
        "skilleval-against",
        "Run an older version of the skills (git:REV or a folder) beside the current one in the same run, and end with "
        "a verdict (default: none)",
        None,
        metavar="REF",
    ),
    Flag(
        "skilleval-judge",
        "Who decides statements in prose (rubric checks): a provider, P or P@MODEL, asked after the agent is dead "
        "(default: nobody; what only they decide is unjudged)",
        None,
        metavar="P",
    ),
    Flag(
        "skilleval-judge-repeats",
        "How often the judge is asked about each statement; most answers decide, and its agreement with itself is "
        "reported (default: 1)",
        1,
        kind=int,
        metavar="N",
    ),
    Flag("skilleval-seed", "Seed of the stub's draws and of resampling (default: 0)", 0, kind=int, metavar="N"),
    Flag("skilleval-output", "Where runs go (default: .skilleval/runs)", ".skilleval/runs", metavar="DIR"),
    Flag(
        "skilleval-resume",
        "Keep a run's finished trials and run only the rest; errors run again (default: the latest unfinished run)",
        None,
        optional_value="latest-unfinished",
        metavar="RUN",
    ),
    Flag(
        "skilleval-gate",
        "What makes the run red: auto, trials, regression or never (default: auto)",
        "auto",
        choices=("auto", "trials", "regression", "never"),
    ),
    Flag(
        "skilleval-method",
        "Rule of the verdict: exact or paired-bootstrap (default: exact)",
        "exact",
        choices=("exact", "paired-bootstrap"),
    ),
    Flag(
        "skilleval-allow-incomparable",
        "Compare although provider, model, effort or method differ, or the baseline is incomplete; the verdict says so "
        "(default: no)",
        default=False,
        kind=bool,
    ),
    Flag(
        "skilleval-stop",
        "Leave trials out: 'decided' spares those of a group whose gate can no longer change (default: never)",
        "never",
        choices=("never", "decided"),
    ),
    Flag(
        "skilleval-threshold",
        "Smallest change worth a verdict: pass_rate=0.05, score=0.05. Repeatable (default: these)",
        (),
        many=True,
        metavar="M=X",
    ),
    Flag(
        "skilleval-cap",
        "At most N trials at once, held across workers: provider:claude=4, kind:agent=2. Repeatable (default: "
        "conservative for real providers, none for the built-in ones)",
        (),
        many=True,
        metavar="K=N",
    ),
    Flag(
        "skilleval-max-errors",
        "Share of errors beyond which the run is invalid and gives no verdict (default: 0.1)",
        0.1,
        kind=float,
        metavar="R",
    ),
    Flag(
        "skilleval-budget",
        "Limit of the whole run: usd=5, tokens=2M, time=30m. Repeatable (default: none)",
        (),
        many=True,
        metavar="X",
    ),
    Flag(
        "skilleval-allow-unknown-cost",
        "Start with a usd budget although the provider may not say what a trial costs; such trials count nothing "
        "(default: no)",
        default=False,
        kind=bool,
    ),
    Flag(
        "skilleval-shard",
        "Run only the I-th of N shares of the cases, the same in every session; 'skilleval merge' unites the runs. "
        "Ordinary tests run in each (default: all)",
        None,
        metavar="I/N",
    ),
    Flag(
        "skilleval-sandbox",
        "Run agents under bubblewrap: auto (where it works), require or off (default: auto)",
        "auto",
        choices=("auto", "require", "off"),
    ),
    Flag(
        "skilleval-tokens",
        "Tokens of each group, in .skilleval-tokens.json: 'update' saves them after a finished run, 'check' warns of "
        "groups that cost more than saved; never a verdict (default: neither)",
        None,
        choices=("update", "check"),
    ),
    Flag(
        "skilleval-tokens-threshold",
        "Share by which a group must cost more than saved to be warned of (default: 0.2)",
        0.2,
        kind=float,
        metavar="R",
    ),
    Flag("skilleval-record", "Write recorded trials into DIR (default: no)", None, metavar="DIR"),
    Flag("skilleval-replay", "Play recorded trials from DIR (default: no)", None, metavar="DIR"),
    Flag(
        "skilleval-keep",
        "Which workspaces to keep in the run folder: none, failed or all (default: none)",
        "none",
        choices=("none", "failed", "all"),
    ),
    Flag(
        "skilleval-report",
        "Report to write: json, md, html, junit=PATH or jsonl=PATH. Repeatable (default: json, md, html)",
        REPORTS,
        many=True,
        metavar="F",
    ),
)

_PATHS_INI = "skilleval_paths"


@dataclass(frozen=True)
class Settings:
    """What the user asked for; equal in every process of a session."""

    rootpath: Path
    trials: int = 1
    trials_given: bool = False
    """Whether the number was asked for, by flag or ini key."""
    compare_baseline: str | None = None
    lanes: tuple[str, ...] = LANES
    cases: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    selects_evals: bool = False
    """Whether a flag selects evals: ordinary tests are then left out of the session."""
    provider: str = "stub"
    model: str | None = None
    effort: str | None = None
    skills: tuple[Path, ...] = ()
    stale: str | None = None
    against: str | None = None
    judge: str | None = None
    judge_repeats: int = 1
    seed: int = 0
    output: Path = Path(".skilleval/runs")
    resume: str | None = None
    gate: Gate = "auto"
    method: Literal["exact", "paired-bootstrap"] = "exact"
    allow_incomparable: bool = False
    stop: Literal["never", "decided"] = "never"
    thresholds: tuple[tuple[str, float], ...] = ()
    caps: tuple[tuple[str, int], ...] = ()
    max_errors: float = 0.1
    budget: tuple[str, ...] = ()
    allow_unknown_cost: bool = False
    shard: tuple[int, int] | None = None
    """Which of how many shares of the cases: from 1."""
    sandbox: Literal["auto", "require", "off"] = "auto"
    tokens: Literal["update", "check"] | None = None
    tokens_threshold: float = 0.2
    record: Path | None = None
    replay: Path | None = None
    keep: Literal["none", "failed", "all"] = "none"
    reports: tuple[str, ...] = REPORTS
    paths: tuple[Path, ...] = ()
    """Folders whose lane folders hold cases."""


SETTINGS = pytest.StashKey["Settings"]()
"""Where the settings of a session lie."""


def add_options(parser: pytest.Parser) -> None:
    """Add each flag, and the ini key of the same name."""
    group = parser.getgroup("skilleval", "evals of Agent Skills")
    for flag in FLAGS:
        names = [f"--{flag.name}"]
        keywords: dict[str, Any] = {"dest": flag.ini, "default": None, "help": flag.help}
        if flag.kind is bool:
            keywords["action"] = "store_true"
        else:
            keywords["action"] = "append" if flag.many else "store"
            keywords["metavar"] = flag.metavar or flag.name.removeprefix("skilleval-").upper()
            if flag.optional_value is not None:
                keywords |= {"nargs": "?", "const": flag.optional_value}
        try:
            group.addoption(*([f"--{flag.short}"] if flag.short else []), *names, **keywords)
        except ValueError:
            # Another plugin owns the unprefixed name; the prefixed one still works.
            keywords["help"] += f" (--{flag.short} belongs to another plugin here)"
            group.addoption(*names, **keywords)
        kind: Literal["args", "string"] = "args" if flag.many else "string"
        parser.addini(flag.ini, flag.help, type=kind, default=None)
    parser.addini(
        _PATHS_INI, "Folders with evals: <folder>/<lane>/*.yaml (default: cases)", type="args", default=["cases"]
    )


def read_settings(config: pytest.Config) -> Settings:
    """Read flags and ini keys.

    Raises:
        OptionMistake: A value is not allowed.
    """
    values = {flag.ini: _read(config, flag) for flag in FLAGS}
    root = config.rootpath
    lanes = tuple(dict.fromkeys(values["skilleval_lane"]))
    selected = LANES if not lanes or "all" in lanes else tuple(lane for lane in LANES if lane in lanes)
    trials = values["skilleval_trials"]
    if trials < 1:
        raise OptionMistake(f"--trials={trials}: a whole number of at least 1 is needed")
    if trials > MOST_TRIALS:
        raise OptionMistake(f"--trials={trials}: a whole number of at most {MOST_TRIALS:,} is needed")
    share = values["skilleval_max_errors"]
    if not 0 <= share <= 1:
        raise OptionMistake(f"--skilleval-max-errors={share}: a share from 0 to 1 is needed")
    if values["skilleval_against"] is not None and values["skilleval_compare_baseline"] is not None:
        raise OptionMistake(
            f"--skilleval-against={values['skilleval_against']} and --compare-baseline="
            f"{values['skilleval_compare_baseline']}: a run has one baseline; give one of them"
        )
    compares = values["skilleval_against"] is not None or values["skilleval_compare_baseline"] is not None
    if values["skilleval_stop"] != "never" and compares:
        raise OptionMistake(
            f"--skilleval-stop={values['skilleval_stop']}: a comparison needs the trials that no gate needs; leave out "
            "this flag, or --skilleval-against and --compare-baseline"
        )
    repeats = values["skilleval_judge_repeats"]
    if repeats < 1:
        raise OptionMistake(f"--skilleval-judge-repeats={repeats}: a whole number of at least 1 is needed")
    return Settings(
        rootpath=root,
        trials=trials,
        trials_given=_read(config, FLAGS[0]._replace(default=None)) is not None,
        compare_baseline=values["skilleval_compare_baseline"],
        lanes=selected,
        cases=tuple(values["skilleval_case"]),
        conditions=tuple(dict.fromkeys(values["skilleval_condition"])),
        selects_evals=any(
            config.getoption(name, None) for name in ("skilleval_lane", "skilleval_case", "skilleval_condition")
        ),
        provider=values["skilleval_provider"],
        model=values["skilleval_model"],
        effort=values["skilleval_effort"],
        skills=tuple(_path(root, text) for text in values["skilleval_skills"]),
        stale=values["skilleval_stale"],
        against=values["skilleval_against"],
        judge=values["skilleval_judge"],
        judge_repeats=repeats,
        seed=values["skilleval_seed"],
        output=_path(root, values["skilleval_output"]),
        resume=values["skilleval_resume"],
        gate=values["skilleval_gate"],
        method=values["skilleval_method"],
        allow_incomparable=values["skilleval_allow_incomparable"],
        stop=values["skilleval_stop"],
        thresholds=tuple(_threshold(text) for text in values["skilleval_threshold"]),
        caps=tuple(_cap(text) for text in values["skilleval_cap"]),
        max_errors=share,
        budget=tuple(values["skilleval_budget"]),
        allow_unknown_cost=values["skilleval_allow_unknown_cost"],
        shard=_shard(values["skilleval_shard"]),
        sandbox=values["skilleval_sandbox"],
        tokens=values["skilleval_tokens"],
        tokens_threshold=_least(values["skilleval_tokens_threshold"]),
        record=_optional_path(root, values["skilleval_record"]),
        replay=_optional_path(root, values["skilleval_replay"]),
        keep=values["skilleval_keep"],
        reports=tuple(_report(text) for text in values["skilleval_report"]),
        paths=tuple(_path(root, text) for text in config.getini(_PATHS_INI)),
    )


def _read(config: pytest.Config, flag: Flag) -> Any:
    value = config.getoption(flag.ini, None)
    source = f"--{flag.name}"
    if value is None or value == [] or (flag.kind is bool and not value):
        value, source = config.getini(flag.ini), f"ini {flag.ini}"
        if value is None or value in ("", []):
            return flag.default
    texts: Sequence[Any] = value if flag.many else [value]
    parsed = [_parse(flag, source, text) for text in texts]
    return tuple(parsed) if flag.many else parsed[0]


def _parse(flag: Flag, source: str, text: object) -> Any:
    if flag.choices and text not in flag.choices:
        raise OptionMistake(f"{source}={text}: choose from {', '.join(flag.choices)}")
    if flag.kind is bool:
        if str(text).lower() not in ("true", "false", "1", "0", "yes", "no"):
            raise OptionMistake(f"{source}={text}: true or false is needed")
        return str(text).lower() in ("true", "1", "yes")
    try:
        return flag.kind(str(text))
    except ValueError:
        wanted = "a whole number" if flag.kind is int else "a number"
        raise OptionMistake(f"{source}={text}: {wanted} is needed") from None


def _cap(text: str) -> tuple[str, int]:
    match = re.fullmatch(r"((?:provider:[^=]+)|kind:(?:plan|agent))=(\d+)", text)
    if not match or int(match[2]) < 1:
        raise OptionMistake(
            f"--skilleval-cap={text}: write provider:NAME=N, kind:plan=N or kind:agent=N with N of at least 1"
        )
    return match[1], int(match[2])


def _shard(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,4})/(\d{1,4})", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise OptionMistake(f"--skilleval-shard={text}: write I/N with I from 1 to N, such as 2/5")
    return int(match[1]), int(match[2])


def _threshold(text: str) -> tuple[str, float]:
    match = re.fullmatch(r"(pass_rate|score)=(0|1|0?\.\d+|1\.0+|0\.0+)", text)
    if not match:
        raise OptionMistake(f"--skilleval-threshold={text}: write pass_rate=X or score=X with X from 0 to 1")
    return match[1], float(match[2])


def _least(value: float) -> float:
    if not 0 <= value < float("inf"):  # also false for NaN
        raise OptionMistake(f"--skilleval-tokens-threshold={value}: a share of at least 0 is needed, such as 0.2")
    return value


def _report(text: str) -> str:
    name, equals, path = text.partition("=")
    if (name in REPORTS and not equals) or (name in ("junit", "jsonl") and path):
        return text
    raise OptionMistake(f"--skilleval-report={text}: choose from json, md, html, junit=PATH, jsonl=PATH")


def _path(root: Path, text: str) -> Path:
    return root / Path(os.path.expanduser(text))  # noqa: PTH111 - Path.expanduser raises without a home


def _optional_path(root: Path, text: str | None) -> Path | None:
    return None if text is None else _path(root, text)
