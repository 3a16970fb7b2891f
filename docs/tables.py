"""Tables of the reference, made from the code's own: nothing here is copied by hand."""

from __future__ import annotations

import argparse
import ast
import inspect
import itertools
import json
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

import pytest_skilleval
from pytest_skilleval import cli, errors, options, plugin
from pytest_skilleval.cases import case_schema
from pytest_skilleval.commands.schema import report_schema
from pytest_skilleval.lanes import dogfood, execution, prompt
from pytest_skilleval.model import CONDITIONS
from pytest_skilleval.providers import BUILTIN, base
from pytest_skilleval.providers.chat import ChatOptions
from pytest_skilleval.providers.classes import TABLE, Retry
from pytest_skilleval.providers.commandspec import CommandSpec
from pytest_skilleval.providers.presets import PRESETS
from pytest_skilleval.providers.program import CliOptions
from pytest_skilleval.providers.templates import VARIABLES
from pytest_skilleval.records import TrialRecord
from pytest_skilleval.scoring.habits import BUILT_IN
from pytest_skilleval.skills import folder
from pytest_skilleval.stats import levels
from pytest_skilleval.workspace.home import ALLOWED

__all__ = ["PAGES", "fixtures", "ini_keys", "schemas"]


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    cells = [[_cell(one) for one in row] for row in rows]
    lines = [head, ["---"] * len(head), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "\\|")


def _code(value: object) -> str:
    text = str(value)
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def attribute_docs(owner: Any) -> dict[str, str]:
    """Return the docstrings below the attributes of a class or module, by name."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(owner)))
    body = tree.body[0].body if isinstance(owner, type) else tree.body  # type: ignore[attr-defined]
    found = {}
    for line, below in itertools.pairwise(body):
        target = line.targets[0] if isinstance(line, ast.Assign) else getattr(line, "target", None)
        if isinstance(target, ast.Name) and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            found[target.id] = inspect.cleandoc(str(below.value.value))
    return found


# ------------------------------------------------------------------------------------------------------- options


class _Recorder:
    """Stands for pytest's parser, and remembers what is added."""

    def __init__(self) -> None:
        self.ini: dict[str, tuple[str, str]] = {}

    def getgroup(self, *_: object) -> _Recorder:
        return self

    def addoption(self, *names: str, **how: Any) -> None:
        pass

    def addini(self, name: str, text: str, **how: Any) -> None:
        self.ini[name] = (str(how["type"]), text)


def ini_keys() -> dict[str, tuple[str, str]]:
    """Return each ini key with its type and help."""
    recorder = _Recorder()
    options.add_options(recorder)  # type: ignore[arg-type]
    return recorder.ini


def _options() -> Iterator[str]:
    for flag in options.FLAGS:
        yield f"### --{flag.name}\n"
        value = "" if flag.kind is bool else f"={flag.metavar or flag.name.removeprefix('skilleval-').upper()}"
        value = f"[{value}]" if flag.optional_value else value
        names = [f"--{flag.short}{value}"] if flag.short else []
        yield f"{', '.join(_code(name) for name in [*names, f'--{flag.name}{value}'])}; ini {_code(flag.ini)}\n"
        text = flag.help + ("" if flag.help.endswith(".") else ".")
        yield text + (f" Allowed: {', '.join(map(_code, flag.choices))}." if flag.choices else "") + "\n"
    yield "### Ini keys without a flag\n"
    flags = {flag.ini for flag in options.FLAGS}
    for name, (kind, text) in ini_keys().items():
        if name not in flags:
            yield f"{_code(name)} ({kind}): {text}.\n"


# ------------------------------------------------------------------------------------------------ schemas and models


def _type(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "const" in schema:
        return _code(schema["const"])
    if "enum" in schema:
        return " or ".join(_code(one) for one in schema["enum"])
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(dict.fromkeys(_type(one) for one in schema[key]))
    if "discriminator" in schema:
        return "a check"
    if schema.get("type") == "array":
        if "prefixItems" in schema:
            return f"[{', '.join(_type(one) for one in schema['prefixItems'])}]"
        items = schema.get("items", {})
        return f"list of {'checks' if 'discriminator' in items else _type(items)}"
    if schema.get("type") == "object":
        inside = schema.get("additionalProperties")
        return f"map to {_type(inside)}" if isinstance(inside, dict) and inside else "map"
    return _limited(schema)


def _limited(schema: Mapping[str, Any]) -> str:
    name = {"regex": "pattern", "relative-path": "path"}.get(schema.get("format", ""), str(schema.get("type", "any")))
    words = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤"}
    limits = [f"{word} {schema[key]:g}" for key, word in words.items() if key in schema]
    return f"{name} {', '.join(limits)}".strip()


def _default(name: str, schema: Mapping[str, Any], required: Sequence[str]) -> str:
    if name in required:
        return "**required**"
    value = schema.get("default")
    return "" if value in (None, "", [], {}) or isinstance(value, dict) else _code(json.dumps(value))


def _properties(schema: Mapping[str, Any], leave_out: Sequence[str] = ()) -> str:
    required = schema.get("required", ())
    rows = [
        (_code(name), _type(one), _default(name, one, required), one.get("description", ""))
        for name, one in schema["properties"].items()
        if name not in leave_out
    ]
    return _table(("key", "value", "default", "meaning"), rows)


def schemas() -> dict[str, str]:
    """Return the published JSON Schemas by the file name that their ids end with."""
    made = (case_schema(), report_schema())
    return {one["$id"].rpartition("/")[2]: json.dumps(one, indent=2) + "\n" for one in made}


def _definition(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    # The anchor is what links from other keys point at.
    yield f"({name.lower()})=\n### {name}\n"
    if text := schema.get("description", ""):
        yield " ".join(text.split()) + "\n"
    if "properties" in schema:
        yield _properties(schema, ("$schema",))
    elif "enum" in schema:
        yield "One of " + ", ".join(_code(one) for one in schema["enum"]) + ".\n"


_FILE = ("CaseItem", "Defaults", "SeveralCases", "SingleCase")


def _case() -> Iterator[str]:
    definitions = case_schema()["$defs"]
    yield "## The keys of a case\n"
    yield _properties(definitions["SingleCase"], ("$schema",))
    yield "## What some keys hold\n"
    for name, schema in definitions.items():
        if name == "Artifact" or (name not in _FILE and "kind" not in schema.get("properties", {})):
            yield from _definition(name, schema)


def _checks() -> Iterator[str]:
    definitions = case_schema()["$defs"].values()
    checks = [one for one in definitions if "const" in one.get("properties", {}).get("kind", {})]
    shared = ("id", "required", "weight", "description")
    yield "## Keys of every check\n"
    yield _properties({**checks[0], "properties": {key: checks[0]["properties"][key] for key in shared}})
    for schema in sorted(checks, key=lambda one: one["properties"]["kind"]["const"]):
        yield f"## {schema['properties']['kind']['const']}\n"
        yield " ".join(schema["description"].split()) + "\n"
        if set(schema["properties"]) - {*shared, "kind"}:
            yield _properties(schema, (*shared, "kind"))


def _report() -> Iterator[str]:
    schema = report_schema()
    yield "## The top of the file\n"
    yield _properties({**schema, "required": ()})
    yield "## What some keys hold\n"
    for name, one in schema["$defs"].items():
        yield from _definition(name, {**one, "required": ()})
    record = TrialRecord.model_json_schema(mode="serialization")
    yield "## record.json\n"
    yield "`body` of a trial's record; `checksum` beside it is the SHA-256 of the body's text.\n"
    yield _properties({**record, "required": ()})
    for name, one in record["$defs"].items():
        if name not in schema["$defs"]:
            yield from _definition(name, {**one, "required": ()})


def _model(model: type[BaseModel]) -> str:
    schema = model.model_json_schema(by_alias=True)
    for one in [schema, *schema.get("$defs", {}).values()]:
        for value in one.get("properties", {}).values():
            value.pop("$ref", None) if "description" in value else None
    rows = [
        (_code(name), _default(name, one, schema.get("required", ())), one.get("description", ""))
        for name, one in schema["properties"].items()
    ]
    return _table(("key", "default", "meaning"), rows)


# ----------------------------------------------------------------------------------------------------- providers


def _providers() -> Iterator[str]:
    rows = []
    for name, where in BUILTIN.items():
        module, _, attribute = where.partition(":")
        loaded = __import__(f"pytest_skilleval.providers.{module}", fromlist=[attribute])
        made = getattr(loaded, attribute)
        line = (inspect.getdoc(made) or "").splitlines()[0]
        rows.append((_code(name), line, "yes" if made.simulated else "no", "yes" if made.paid else "no"))
    rows.append((_code("replay"), "Recorded trials, played again.", "as recorded", "no"))
    rows.append((_code("command:NAME"), "Any command line, declared in pyproject.toml.", "no", "as declared"))
    yield _table(("provider", "who answers", "simulated", "costs money or quota"), rows)


def _errors() -> Iterator[str]:
    docs = attribute_docs(errors.ErrorClass)
    words = {"error": "error", "failed": "failed", "grade": "by its checks"}
    rows = [
        (
            _code(one.value),
            docs[one.name],
            "yes" if row.retry else "",
            words[row.outcome],
            "yes" if row.stops_provider else "",
        )
        for one, row in TABLE.items()
    ]
    yield _table(("class", "meaning", "asked again", "outcome", "stops the provider"), rows)


def _retry() -> Iterator[str]:
    docs = attribute_docs(Retry)
    rows = [(_code(name), _code(getattr(Retry(), name)), docs[name]) for name in Retry.model_fields]
    yield _table(("key", "default", "meaning"), rows)


def _command_spec() -> Iterator[str]:
    yield _model(CommandSpec)
    yield "`parse` holds:\n"
    parse: Any = CommandSpec.model_fields["parse"].annotation
    yield _model(parse)
    yield f"Variables in braces: {', '.join(_code('{' + name + '}') for name in VARIABLES)}, and `{{env:NAME}}`.\n"
    yield f"Presets: {', '.join(map(_code, PRESETS))}.\n"


# ------------------------------------------------------------------------------------------- commands and fixtures


def _commands() -> Iterator[str]:
    parser = cli.command_line()
    for one in parser._actions:  # noqa: SLF001 - argparse has no public way to ask
        if isinstance(one, argparse._SubParsersAction):  # noqa: SLF001 - the same
            for name, command in one.choices.items():
                yield from _command(name, command)


def _command(name: str, parser: argparse.ArgumentParser) -> Iterator[str]:
    yield f"## skilleval {name}\n"
    yield f"{parser.description or ''}\n"
    rows = []
    for action in parser._actions:  # noqa: SLF001 - the same
        names = action.option_strings or [action.metavar or action.dest]
        value = "" if action.nargs == 0 or not action.option_strings else f" {action.metavar or action.dest.upper()}"
        shown = ", ".join(_code(f"{one}{value}") for one in names if one != "-h")
        allowed = f" Allowed: {', '.join(map(_code, action.choices))}." if action.choices else ""
        if action.dest != "help":
            rows.append((shown, (action.help or "") + allowed))
    yield _table(("argument", "meaning"), rows)
    if parser.epilog:
        yield f"```text\n{parser.epilog.strip()}\n```\n"


def fixtures() -> dict[str, str]:
    """Return the docstring of each fixture."""
    tree = ast.parse(inspect.getsource(plugin))
    found = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and any(
            ast.unparse(one) == "pytest.fixture" for one in node.decorator_list
        ):
            found[node.name] = ast.get_docstring(node) or ""
    return found


def _fixtures() -> Iterator[str]:
    yield _table(("fixture", "what it is"), [(_code(name), text) for name, text in fixtures().items()])


# ------------------------------------------------------------------------------------------------------ the rest


def _habits() -> Iterator[str]:
    rows = [(_code(name), one.severity, one.fix) for name, one in BUILT_IN.items()]
    yield _table(("name", "severity", "what to do instead"), rows)


def _conditions() -> Iterator[str]:
    rows = [
        (_code(one.name), one.installs, "yes" if one.preloads else "no", "yes" if one.control else "no")
        for one in CONDITIONS.values()
    ]
    yield _table(("condition", "installed where agents look", "text in the context", "control"), rows)


def _weights() -> Iterator[str]:
    lanes = {"prompt": prompt, "execution": execution, "dogfood": dogfood}
    rows = [
        (_code(lane), ", ".join(f"{_code(name)} {weight:g}" for name, weight in module.WEIGHTS.items()))
        for lane, module in lanes.items()
    ]
    yield _table(("lane", "components and their weights"), rows)


def _left_out() -> Iterator[str]:
    top, anywhere = (sorted(names) for names in (folder._LEFT_OUT_AT_TOP, folder._LEFT_OUT))  # noqa: SLF001 - its own words
    rows = [("at the top", ", ".join(map(_code, top))), ("anywhere", ", ".join(map(_code, [*anywhere, "*.pyc"])))]
    yield _table(("where", "names"), rows)


def _levels() -> Iterator[str]:
    docs = attribute_docs(levels.Levels)
    rows = [(_code(name), f"{getattr(levels.DEFAULT_LEVELS, name):g}", text) for name, text in docs.items()]
    yield _table(("level", "default", "meaning"), rows)


def _environment() -> Iterator[str]:
    yield ", ".join(map(_code, ALLOWED)) + ".\n"


def _error_tree() -> Iterator[str]:
    yield f"```text\n{inspect.getdoc(errors)}\n```\n"


def _signature(node: ast.FunctionDef) -> str:
    arguments = [one for one in node.args.args if one.arg != "self"]
    shown = ", ".join(f"{one.arg}: {ast.unparse(one.annotation)}" if one.annotation else one.arg for one in arguments)
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{node.name}({shown}){returns}"


def _class(node: ast.ClassDef) -> Iterator[str]:
    docs = {}
    for line, below in itertools.pairwise([*node.body, ast.Pass()]):
        if isinstance(line, ast.AnnAssign):
            said = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
            docs[ast.unparse(line.target)] = (ast.unparse(line.annotation), str(below.value.value) if said else "")
    yield f"### {node.name}\n\n{ast.get_docstring(node) or ''}\n"
    if docs:
        yield _table(("attribute", "type", "meaning"), [(_code(n), _code(t), text) for n, (t, text) in docs.items()])
    methods = [line for line in node.body if isinstance(line, ast.FunctionDef) and not line.name.startswith("_")]
    if methods:
        yield _table(
            ("method", "what it does"), [(_code(_signature(one)), ast.get_docstring(one) or "") for one in methods]
        )


def _provider_api() -> Iterator[str]:
    tree = ast.parse(inspect.getsource(base))
    # MyST drops what stands before the first heading of a directive's text.
    yield f"### The life of a question\n\n{ast.get_docstring(tree)}\n"
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from _class(node)


def _public() -> Iterator[str]:
    yield ", ".join(map(_code, pytest_skilleval.__all__)) + ".\n"


_MAKERS: dict[str, Callable[[], Iterator[str]]] = {
    "options": _options,
    "case": _case,
    "checks": _checks,
    "report": _report,
    "providers": _providers,
    "errors": _errors,
    "retry": _retry,
    "cli-options": lambda: iter([_model(CliOptions)]),
    "chat-options": lambda: iter([_model(ChatOptions)]),
    "command-spec": _command_spec,
    "commands": _commands,
    "fixtures": _fixtures,
    "habits": _habits,
    "conditions": _conditions,
    "weights": _weights,
    "levels": _levels,
    "left-out": _left_out,
    "environment": _environment,
    "error-tree": _error_tree,
    "public": _public,
    "provider-api": _provider_api,
}
PAGES: dict[str, Callable[[], str]] = {
    name: (lambda make=make: "\n".join(make()))
    for name, make in _MAKERS.items()  # type: ignore[misc]
}
"""What a page asks for by ```` ```{table-of} NAME ````, as Markdown."""
