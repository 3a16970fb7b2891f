"""The documentation holds what the code holds, its examples run, and its links resolve."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import yaml

from pytest_skilleval import cli, hookspecs, plugin, pythoncases
from pytest_skilleval.cases import load_cases
from pytest_skilleval.cases.spec import validate_spec
from pytest_skilleval.casespec import CaseSpec, CheckBase
from pytest_skilleval.errors import ErrorClass
from pytest_skilleval.model import CONDITIONS
from pytest_skilleval.options import FLAGS
from pytest_skilleval.providers import BUILTIN
from pytest_skilleval.providers.base import ProviderSettings
from pytest_skilleval.providers.chat import ChatOptions
from pytest_skilleval.providers.command import Command
from pytest_skilleval.providers.program import CliOptions, read_options
from pytest_skilleval.records import Outcome, TrialRecord
from pytest_skilleval.results import Report
from pytest_skilleval.scoring.habits import BUILT_IN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)
READ_BY_PEOPLE = [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FLAG_BY_NAME = {name: flag for flag in FLAGS for name in (f"--{flag.name}", f"--{flag.short}")}
PATH_FLAGS = {"skilleval-output", "skilleval-record", "skilleval-replay", "skilleval-skills", "skilleval-stale"}
"""Flags whose value may be a path that exists: as a word of its own it would take part in pytest's rootdir."""


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


each_page = pytest.mark.parametrize("page", READ_BY_PEOPLE, ids=_name)


# ------------------------------------------------------------------------------------------------- reading a page


class Block(NamedTuple):
    """A fenced block, and the comment above it that says what a test does with it."""

    language: str
    text: str
    word: str
    """`file`, `run`, `shows`, ... or nothing."""
    value: str


_BLOCK = re.compile(
    r"(?:^<!-- ([a-z]+)[: ]*([^\n]*?) -->\n)?^```([{}\w-]+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL
)


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page, in order."""
    found = _BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [Block(one[3], one[4], one[1] or "", one[2] or "") for one in found]


class Shown(NamedTuple):
    """A command of a console block, and what it prints."""

    line: str
    output: tuple[str, ...]


def commands(text: str) -> Iterator[Shown]:
    """Yield the commands of a console block."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line, _, output = part.replace("\\\n", " ").partition("\n")
        yield Shown(line, tuple(output.rstrip("\n").split("\n")) if output.strip() else ())


def typed(page: Path) -> Iterator[list[str]]:
    """Yield the words of each command that a page shows."""
    for block in blocks(page):
        if block.language == "console":
            for command in commands(block.text):
                yield shlex.split(command.line, comments=True)


def _tables() -> Any:
    spec = importlib.util.spec_from_file_location("docs_tables", DOCS / "tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TABLES = _tables()


def whole(name: str) -> str:
    """Return a page with the tables that its build makes."""
    text = (DOCS / name).read_text(encoding="utf-8")
    return re.sub(r"```\{table-of\} ([\w-]+)\n```", lambda found: TABLES.PAGES[found[1]](), text)


def rows(text: str, column: int = 0) -> list[str]:
    """Return the cells of a column of all tables."""
    lines = [line for line in text.splitlines() if line.startswith("|") and not re.match(r"\|\s*[-:]", line)]
    return [re.split(r"(?<!\\)\|", line)[column + 1].strip() for line in lines]


# ---------------------------------------------------------------------------------------- what there is, is described


def test_every_flag_and_ini_key_stands_in_the_reference() -> None:
    text = whole("reference/options.md")
    for flag in FLAGS:
        assert f"### --{flag.name}\n" in text
        assert flag.help in text
        assert not flag.short or f"`--{flag.short}=" in text
    for name in TABLES.ini_keys():
        assert f"`{name}`" in text
    assert len(TABLES.ini_keys()) == len(FLAGS) + 1


def test_every_hook_stands_in_the_reference_with_an_example() -> None:
    text = (DOCS / "reference/hooks.md").read_text()
    assert ".. automodule:: pytest_skilleval.hookspecs\n   :members:" in text
    hooks = {name: hook for name, hook in vars(hookspecs).items() if name.startswith("pytest_")}
    assert hooks
    for name, hook in hooks.items():
        assert "Example::" in hook.__doc__, name
        assert f"def {name}(" in hook.__doc__


def test_every_kind_of_check_stands_in_the_reference_with_all_its_keys() -> None:
    text = whole("reference/checks.md")
    kinds = {one.model_fields["kind"].annotation.__args__[0]: one for one in CheckBase.__subclasses__()}
    assert set(re.findall(r"^## (.+)$", text, re.MULTILINE)) == {*kinds, "Keys of every check"}
    for kind, model in kinds.items():
        section = text.partition(f"## {kind}\n")[2].partition("\n## ")[0]
        own = set(model.model_fields) - set(CheckBase.model_fields) - {"kind"}
        assert {cell.strip("`") for cell in rows(section)} - {"key"} == own


def test_every_key_of_a_case_stands_in_the_reference() -> None:
    assert {f"`{key}`" for key in CaseSpec.model_fields} <= set(rows(whole("reference/case-file.md")))


def test_every_key_at_the_top_of_a_report_stands_in_the_reference() -> None:
    keys = {field.alias or name for name, field in Report.model_fields.items()}
    assert {f"`{key}`" for key in keys} <= set(rows(whole("reference/report.md")))


def test_every_key_of_a_record_stands_in_the_reference() -> None:
    section = whole("reference/report.md").partition("\n## record.json\n")[2].partition("\n### ")[0]
    keys = [f"`{field.alias or name}`" for name, field in TrialRecord.model_fields.items()]
    assert rows(section)[1:] == keys


def test_every_event_that_a_run_writes_stands_in_the_reference_with_its_keys(folder: Folder) -> None:
    folder.write("cases/execution/greet.yaml", "{prompt: Greet., conditions: [none], stub: {solve_rate: 1}}")
    folder.run(Shown("pytest --trials 1 --skilleval-report=jsonl=events.jsonl", ()))
    written: dict[str, set[str]] = {}
    for line in (folder.path / "events.jsonl").read_text().splitlines():
        event = json.loads(line)
        written[event["event"]] = set(event) - {"event", "schema", "time", "run"}
    text = (DOCS / "reference/events.md").read_text()
    told = zip(rows(text)[1:], rows(text, 1)[1:], strict=True)
    assert {name.strip("`"): set(re.findall(r"`(\w+)`", keys)) for name, keys in told} == written


def test_every_provider_stands_in_the_reference() -> None:
    names = set(rows(whole("reference/providers.md")))
    assert {f"`{name}`" for name in (*BUILTIN, "replay", "command:NAME")} <= names


@pytest.mark.parametrize("name", ["claude", "codex", "chat", "command:my-agent", "replay"])
def test_every_provider_that_is_not_simulated_has_a_guide_that_runs_it(name: str) -> None:
    guides = [page for page in PAGES if page.parent.name == "how-to"]
    assert any(f"--skilleval-provider={name}" in words for page in guides for words in typed(page))


def test_every_class_of_error_stands_in_the_reference_once() -> None:
    text = whole("reference/providers.md").partition("## Error classes")[2]
    text = text.partition("\n*Asked again*")[0]
    assert sorted(rows(text)) == sorted(["class", *(f"`{one.value}`" for one in ErrorClass)])
    assert all(rows(text, 1))


def test_every_outcome_is_explained() -> None:
    section = (DOCS / "explanation/how-it-works.md").read_text().partition("\n## Outcomes")[2]
    assert rows(section)[1:] == [one.value for one in Outcome]


def test_every_exit_status_stands_in_the_reference() -> None:
    pytest_part, _, cli_part = (DOCS / "reference/exit-codes.md").read_text().partition("\n## skilleval")
    assert rows(pytest_part)[1:] == [str(int(one)) for one in pytest.ExitCode if int(one) <= 5]
    assert rows(cli_part)[1:] == ["0", "1", str(cli.STOPPED), str(cli.BROKEN), str(cli.MISTAKE)]


def test_every_command_stands_in_the_reference_with_its_arguments() -> None:
    text = whole("reference/commands.md")
    assert re.findall(r"^## skilleval (.+)$", text, re.MULTILINE) == list(cli.COMMANDS)
    assert "`--detect D`" in rows(text.partition("## skilleval plan\n")[2].partition("\n## ")[0])


def test_every_fixture_stands_in_the_reference() -> None:
    made = {name for name, one in vars(plugin).items() if type(one).__name__ == "FixtureFunctionDefinition"}
    assert made == set(TABLES.fixtures())
    assert {f"`{name}`" for name in made} <= set(rows(whole("reference/fixtures.md")))


def test_every_argument_of_the_marker_stands_in_the_reference() -> None:
    section = (DOCS / "reference/fixtures.md").read_text().partition("## The marker")[2].partition("\n## ")[0]
    assert [cell.strip("`") for cell in rows(section)][1:] == list(pythoncases._MARK_KEYS)


def test_every_condition_and_built_in_anti_pattern_stands_in_the_reference() -> None:
    assert {f"`{name}`" for name in (*CONDITIONS, *BUILT_IN)} <= set(rows(whole("reference/case-file.md")))


def test_every_table_that_can_be_made_is_on_a_page_and_none_is_asked_for_twice_on_one() -> None:
    asked = [re.findall(r"```\{table-of\} ([\w-]+)\n", page.read_text()) for page in PAGES]
    assert {name for names in asked for name in names} == set(TABLES.PAGES)
    assert all(len(names) == len(set(names)) for names in asked)


def test_the_schemas_are_published_where_their_ids_say() -> None:
    url = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Documentation"]
    schemas = {name: json.loads(text) for name, text in TABLES.schemas().items()}
    assert sorted(schemas) == ["case.schema.json", "report.schema.json"]
    assert all(schema["$id"] == f"{url}/en/latest/{name}" for name, schema in schemas.items())


# ------------------------------------------------------------------------------------------- what is shown, can be typed


@pytest.mark.parametrize("page", [*READ_BY_PEOPLE, *WORKFLOWS], ids=_name)
def test_every_flag_that_a_page_names_exists(page: Path) -> None:
    named = set(re.findall(r"--skilleval-[a-z-]*[a-z]", page.read_text(encoding="utf-8")))
    assert named <= set(FLAG_BY_NAME)


@each_page
def test_every_command_that_a_page_shows_can_be_parsed(page: Path) -> None:
    for words in typed(page):
        if words[:1] == ["skilleval"]:
            assert cli.command_line(words[1:2]).parse_args(words[1:]).command == words[1]
        if words[:1] == ["pytest"]:
            _parse_pytest(words)


def _parse_pytest(words: Sequence[str]) -> None:
    for word in words[1:]:
        name, equals, value = word.partition("=")
        flag = FLAG_BY_NAME.get(name)
        if flag is not None:
            assert not equals or not flag.choices or value in flag.choices, word
            assert equals or flag.name not in PATH_FLAGS, f"{word}: write {name}=DIR"


@each_page
def test_every_link_to_a_file_resolves(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`\n]*`", "", text)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        path = target.partition("#")[0]
        if path and not re.match(r"[a-z]+:", path):
            assert (page.parent / path).exists(), target


@each_page
def test_every_python_yaml_toml_and_json_example_is_well_formed(page: Path) -> None:
    for block in blocks(page):
        match block.language:
            case "python":
                compile(block.text, _name(page), "exec")
            case "yaml":
                assert yaml.safe_load(block.text) is not None
            case "toml":
                assert tomllib.loads(block.text)
            case "json":
                assert json.loads(block.text)


@each_page
def test_every_case_that_a_page_calls_valid_is_valid(page: Path) -> None:
    for block in blocks(page):
        if block.word == "valid":
            data = yaml.safe_load(block.text)
            for case in data.get("cases", [data]):
                validate_spec({**data.get("defaults", {}), **case})


@each_page
def test_every_declared_provider_is_accepted(page: Path, tmp_path: Path) -> None:
    for block in blocks(page):
        if block.language != "toml":
            continue
        for name, table in tomllib.loads(block.text)["tool"]["skilleval"].get("providers", {}).items():
            if block.word == "declares":
                made = Command(name, ProviderSettings(options=table, rootpath=tmp_path))
                assert made.id == f"command:{block.value}"
            else:
                read_options(ChatOptions if name == "chat" else CliOptions, name, table)


def test_the_evals_that_the_guide_shows_become_cases(tmp_path: Path) -> None:
    files = {block.value: block.text for block in blocks(DOCS / "how-to/use-existing-evals.md") if block.word == "file"}
    (tmp_path / "skills/csv-cleaner/evals/files").mkdir(parents=True)
    (tmp_path / "skills/csv-cleaner/evals/files/orders.csv").write_text("a,b\n")
    (tmp_path / "skills/csv-cleaner/SKILL.md").write_text(
        "---\nname: csv-cleaner\ndescription: Cleans CSV.\n---\n\nDo.\n"
    )
    cases = []
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        cases.append(load_cases(tmp_path / name, root=tmp_path).cases)
    (execution,), prompts = cases
    assert (execution.lane.value, execution.skill) == ("execution", "csv-cleaner")
    assert [check.kind for check in execution.spec.checks] == ["rubric", "file"]
    assert [case.skill for case in prompts] == ["csv-cleaner", None]


# ------------------------------------------------------------------------------------------------------ what runs


class Folder:
    """An empty folder in which a page is followed."""

    def __init__(self, path: Path, temp: Path) -> None:
        self.path = path
        outside = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "GITHUB_"))}
        self.env = outside | {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "TMPDIR": str(temp),
            "COLUMNS": "80",
            # Order changes no result, but the letters of the progress line.
            "PYTEST_ADDOPTS": "-p no:randomly -p no:cacheprovider",
        }

    def follow(self, page: Path) -> int:
        """Do what a page says, in order, and return how many commands ran."""
        count = 0
        for block in blocks(page):
            if block.word == "file":
                self.write(block.value, block.text)
            elif block.word == "shows":
                assert block.text in (self.path / block.value).read_text()
            elif block.word == "run":
                status = int(block.value.partition("=")[2] or 0)
                for command in commands(block.text):
                    self.run(command, status)
                    count += 1
        return count

    def write(self, name: str, text: str) -> None:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, command: Shown, status: int = 0) -> str:
        done = subprocess.run(
            ["bash", "-c", command.line],
            cwd=self.path,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        said = done.stdout + done.stderr
        assert done.returncode == status, f"{command.line}\n{said}"
        if command.output:
            expect(command.output, done.stdout, command.line)
        return done.stdout


def expect(wanted: Sequence[str], said: str, what: str) -> None:
    """Compare output with what a page shows: `...` stands for any text in a line, alone for any lines."""
    lines = [line.rstrip() for line in said.rstrip("\n").split("\n")]
    place, anywhere = 0, False
    for line in wanted:
        if line == "...":
            anywhere = True
            continue
        pattern = re.compile(".*".join(re.escape(part) for part in line.rstrip().split("...")))
        last = len(lines) if anywhere else place + 1
        found = next((at for at in range(place, min(last, len(lines))) if pattern.fullmatch(lines[at])), None)
        assert found is not None, f"{what}: not found: {line!r} in\n{said}"
        place, anywhere = found + 1, False
    assert anywhere or place == len(lines), f"{what}: more is printed than is shown:\n{said}"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    """An empty folder; in the end the temp directory must be empty too, but for the `tmp_path` of pytest itself."""
    for name in ("project", "temp"):
        (tmp_path / name).mkdir()
    yield Folder(tmp_path / "project", tmp_path / "temp")
    left = [path.name for path in (tmp_path / "temp").iterdir() if not path.name.startswith("pytest-of-")]
    assert left == []


RUNNABLE = [page for page in PAGES if any(block.word == "run" for block in blocks(page))]


def test_the_tutorial_is_among_what_is_run() -> None:
    assert {page for page in PAGES if page.parent.name == "tutorial"} <= set(RUNNABLE)


@pytest.mark.parametrize("page", RUNNABLE, ids=_name)
def test_a_page_followed_literally_in_an_empty_folder_does_what_it_says(page: Path, folder: Folder) -> None:
    assert folder.follow(page) > 0


def test_the_first_case_of_the_readme_runs(folder: Folder) -> None:
    readme = blocks(ROOT / "README.md")
    case = next(block.text for block in readme if block.language == "yaml")
    solution = next(block.text for block in readme if block.language == "sh")
    python = next(block.text for block in readme if block.language == "python")
    folder.write("skills/greeter/SKILL.md", "---\nname: greeter\ndescription: Greets people.\n---\n\nSay hello.\n")
    folder.write("cases/execution/greet.yaml", case)
    folder.write("cases/execution/greet.sh", solution)
    folder.write("cases/test_greets.py", python)
    said = folder.run(Shown("pytest cases --skilleval-case=greet --trials 2 --skilleval-provider=oracle", ()))
    assert "execution  preloaded  2       100%" in said
    plan = folder.run(Shown("pytest cases --collect-only -q --skilleval-case=greets", ()))
    assert "cases/test_greets.py::test_greets[preloaded-1]" in plan


def test_what_a_page_shows_is_compared_line_by_line() -> None:
    expect(["a", "...", "d ... f", "..."], "a\nb\nc\nd e f\ng\n", "example")
    for wanted in (["a"], ["b", "..."], ["a", "c", "..."], ["...", "z", "..."], ["...", "d e"]):
        with pytest.raises(AssertionError):
            expect(wanted, "a\nb\nc\nd e f\ng\n", "example")


# -------------------------------------------------------------------------------------------------------- workflows


@pytest.mark.parametrize("path", WORKFLOWS, ids=_name)
def test_a_workflow_is_limited_in_rights_and_time(path: Path) -> None:
    data = yaml.safe_load(path.read_text())
    assert data["permissions"] == {"contents": "read"}
    assert all(job["timeout-minutes"] <= 60 for job in data["jobs"].values())


def test_ci_runs_the_main_job_serially_and_with_two_workers() -> None:
    smoke = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]["smoke"]
    assert smoke["strategy"]["matrix"]["workers"] == ["0", "2"]
    lines = [step.get("run", "") for step in smoke["steps"]]
    assert any("pytest --skilleval-lane=execution -n ${{ matrix.workers }}" in line for line in lines)


def test_the_example_for_users_gives_no_key_to_forks_and_compares_with_a_baseline() -> None:
    job = yaml.safe_load((ROOT / ".github/workflows/skill-evals.example.yml").read_text())["jobs"]["evals"]
    assert "head.repo.full_name == github.repository" in job["if"]
    step = next(step for step in job["steps"] if "env" in step)
    assert "--compare-baseline=main" in step["run"]
    assert [step for step in job["steps"] if "secrets." in str(step)] == [step]


def test_the_makefile_builds_the_docs_with_warnings_as_errors() -> None:
    text = (ROOT / "Makefile").read_text()
    assert re.search(r"^docs:.*\n\t.*sphinx-build -W ", text, re.MULTILINE)
