"""What the package promises: its names, a light import, its types, its tree of errors, its wheel."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

import pytest_skilleval
from pytest_skilleval import errors

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
HEAVY = ("numpy", "scipy", "pydantic", "jinja2", "yaml", "PIL", "jmespath")


# ---------------------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize("name", pytest_skilleval.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(pytest_skilleval, name).__name__ == name


def test_every_name_that_type_checkers_see_is_public() -> None:
    tree = ast.parse((ROOT / "pytest_skilleval/__init__.py").read_text())
    seen = {
        alias.name
        for block in tree.body
        if isinstance(block, ast.If)
        for line in block.body
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    }
    assert seen == set(pytest_skilleval.__all__)
    assert pytest_skilleval.__all__ == sorted(pytest_skilleval.__all__)


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        pytest_skilleval.Nothing  # noqa: B018 - the access is what is tested


def test_what_type_checkers_are_promised_names_every_public_name() -> None:
    tree = ast.parse((ROOT / "tests/typing/api.py").read_text())
    named = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    imported = {
        alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == "pytest_skilleval"
        for alias in node.names
    }
    assert imported <= named
    assert set(pytest_skilleval.__all__) - imported <= {"Condition", "ProviderSettings"}


MODULES = sorted(path for path in (ROOT / "pytest_skilleval").rglob("*.py"))


def _module_id(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", MODULES, ids=_module_id)
def test_a_module_opens_with_one_line_that_says_what_it_is_for(path: Path) -> None:
    doc = ast.get_docstring(ast.parse(path.read_text()))
    assert doc
    assert re.search(r"[.?]$", doc.splitlines()[0])


@pytest.mark.parametrize("path", MODULES, ids=_module_id)
def test_every_name_in_a_modules_all_is_defined_in_it(path: Path) -> None:
    tree = ast.parse(path.read_text())
    exported: list[str] = []
    defined: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List() as value):
                exported = [one.value for one in value.elts if isinstance(one, ast.Constant)]
            case ast.Name(id=name, ctx=ast.Store()) | ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                defined.add(name)
            case ast.ImportFrom(names=names) | ast.Import(names=names):
                defined |= {alias.asname or alias.name for alias in names}
    assert set(exported) <= defined
    assert len(exported) == len(set(exported))


# --------------------------------------------------------------------------------------------------- a light import


@pytest.mark.parametrize("module", ["pytest_skilleval", "pytest_skilleval.plugin"])
def test_importing_it_loads_nothing_heavy(module: str) -> None:
    code = f"import sys, {module}; print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "[]\n"


def test_a_session_without_evals_loads_nothing_heavy(tmp_path: Path) -> None:
    names = f"{HEAVY!r}"
    (tmp_path / "test_plain.py").write_text(
        f"import sys\n\ndef test_plain():\n    assert sorted(set({names}) & set(sys.modules)) == []\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "pytest_skilleval.plugin", "-p", "no:cacheprovider"]
    # Other plugins of this environment load what they like.
    environment = {"PATH": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*command, str(tmp_path)], capture_output=True, text=True, check=False, cwd=tmp_path, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr


# ------------------------------------------------------------------------------------------------------------ types


def test_the_package_is_typed_and_the_wheel_holds_the_marker() -> None:
    assert (ROOT / "pytest_skilleval/py.typed").is_file()
    assert PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"] == {"packages": ["pytest_skilleval"]}
    assert "Typing :: Typed" in PROJECT["project"]["classifiers"]


# ----------------------------------------------------------------------------------------------------- dependencies


def test_every_dependency_has_its_reason_in_the_guide_for_contributors() -> None:
    groups = PROJECT["dependency-groups"].values()
    lines = [
        *PROJECT["project"]["dependencies"],
        *(line for one in PROJECT["project"]["optional-dependencies"].values() for line in one),
        *(line for group in groups for line in group if isinstance(line, str)),
    ]
    names = {re.match(r"[\w.-]+", line)[0] for line in lines}  # type: ignore[index]
    table = (ROOT / "CONTRIBUTING.md").read_text().partition("## What each dependency saves")[2]
    told = {name.strip() for row in table.splitlines() if row.startswith("|") for name in row.split("|")[1].split(",")}
    assert names <= told


# ----------------------------------------------------------------------------------------------------------- errors


def test_the_tree_of_errors_in_the_docstring_is_the_tree_of_classes() -> None:
    drawn: dict[str, str | None] = {}
    stack: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"^([| `-]*)([A-Z]\w+)(\s{2,}.*)?$", line)
        if found is None:
            continue
        depth = len(found[1]) // 4
        stack = [(at, name) for at, name in stack if at < depth]
        drawn[found[2]] = stack[-1][1] if stack else None
        stack.append((depth, found[2]))
    classes: dict[str, str | None] = {
        name: one.__mro__[1].__name__ if one.__mro__[1] is not Exception else None
        for name, one in vars(errors).items()
        if isinstance(one, type) and issubclass(one, errors.SkillevalError)
    }
    assert drawn == classes


# ------------------------------------------------------------------------------------------------------------ wheel


@pytest.fixture
def wheel_check() -> Any:
    """The module behind `make dist`."""
    spec = importlib.util.spec_from_file_location("docs_wheel", ROOT / "docs/wheel.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _wheel(folder: Path, names: tuple[str, ...], filling: bytes = b"") -> Path:
    path = folder / "made-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, filling)
    return path


def test_a_wheel_that_is_right_has_no_problems(wheel_check: Any, tmp_path: Path) -> None:
    path = _wheel(tmp_path, (*wheel_check.WANTED, "pytest_skilleval-0.1.0.dist-info/METADATA"))
    assert wheel_check.problems(path) == []
    assert wheel_check.check(str(tmp_path)) == 0


def test_a_wheel_that_is_too_large_or_lacks_or_holds_something_is_refused(wheel_check: Any, tmp_path: Path) -> None:
    names = (*wheel_check.WANTED[1:], "tests/test_x.py", "pytest_skilleval/__pycache__/x.pyc")
    found = wheel_check.problems(_wheel(tmp_path, names, b"x" * (wheel_check.LIMIT // len(names) + 1)))
    assert [line.split()[0] for line in found] == [
        next(line.split()[0] for line in found if "bytes" in line),
        "pytest_skilleval/py.typed",
        "tests/test_x.py",
        "pytest_skilleval/__pycache__/x.pyc",
    ]
    assert wheel_check.check(str(tmp_path)) == 1


def test_what_the_wheel_must_hold_is_in_the_package(wheel_check: Any) -> None:
    assert all((ROOT / name).is_file() for name in wheel_check.WANTED)


def test_the_oldest_dependencies_are_those_that_the_project_names(wheel_check: Any) -> None:
    pins = wheel_check.oldest()
    assert "pytest==9.0" in pins
    assert len(pins) == len(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"])
