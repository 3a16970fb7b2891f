"""YAML text to plain data, strict where YAML 1.1 and 1.2 disagree, and the line of each key."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import yaml

from pytest_skilleval.errors import CaseMistake
from pytest_skilleval.memory import collector_held

__all__ = ["MAX_DEPTH", "Loc", "YamlText", "dotted", "parse_yaml"]

Loc = tuple[str | int, ...]

MAX_DEPTH = 100
"""Levels of nesting; a case needs about ten."""
MAX_EXPANSION = 1_000_000
"""Nodes (and hundreds of characters) that aliases may repeat: a bomb ends here, a large suite does not."""

PLAIN, QUOTED, MAPPING, SEQUENCE = "?plain", "?quoted", "?mapping", "?sequence"
CORE_TAG = "tag:yaml.org,2002:"
TEXT_TAGS = frozenset({QUOTED, CORE_TAG + "str"})
OTHER_SCALAR_TAGS = frozenset({PLAIN, *(CORE_TAG + name for name in ("int", "float", "bool", "null"))})
COLLECTION_TAGS = frozenset({MAPPING, SEQUENCE, CORE_TAG + "map", CORE_TAG + "seq"})

_WORDS: dict[str, object] = {"": None, "~": None}
for _word, _value in {"null": None, "true": True, "false": False}.items():
    _WORDS |= dict.fromkeys((_word, _word.title(), _word.upper()), _value)
_SWITCHES = {
    form: value
    for word, value in {"yes": True, "no": False, "on": True, "off": False}.items()
    for form in (word, word.title(), word.upper())
}
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)\Z|0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+][0-9]+)?\Z")
_ENDLESS = re.compile(r"[-+]?\.(?:inf|Inf|INF)\Z|\.(?:nan|NaN|NAN)\Z")
_DISPUTED: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\d{4}-\d\d?-\d\d?(?:[Tt ].*)?\Z"), "YAML 1.1 reads a date"),
    (re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?\Z"), "YAML 1.1 reads a number to the base 60"),
    (re.compile(r"[-+]?0[0-9_]+\Z"), "YAML 1.1 reads an octal number"),
    (re.compile(r"[-+]?0[ob][0-7_]+\Z"), "YAML 1.1 and 1.2 read different numbers"),
    (re.compile(r"[-+]?(?=[0-9_.]*_)[0-9][0-9_]*(?:\.[0-9_]*)?\Z"), "YAML 1.1 reads a number, YAML 1.2 text"),
    (re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+\Z"), "YAML 1.1 reads text, YAML 1.2 a number"),
)


class _AsWritten:
    """Marks each node as it was written instead of guessing its type: the message of a bad guess needs the key."""

    def descend_resolver(self, current_node: Any, current_index: Any) -> None:
        pass

    def ascend_resolver(self) -> None:
        pass

    def resolve(self, kind: type[yaml.Node], _value: object, implicit: Any) -> str:
        if kind is yaml.ScalarNode:
            return PLAIN if implicit[0] else QUOTED
        return MAPPING if kind is yaml.MappingNode else SEQUENCE


# libyaml's composer is ten times as fast, and not in every build of PyYAML.
_BASE = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
_LOADER: Any = type("_Loader", (_AsWritten, _BASE), {})


class YamlText(NamedTuple):
    """Parsed YAML."""

    data: Any
    """None, bool, int, float, str, list and dict with text keys; no NaN, no infinity."""
    root: yaml.Node | None
    first_line: int

    def line(self, loc: Loc) -> int | None:
        """Return the 1-based line of a key or item, or None where there is no such place."""
        node, line = self.root, self._line_of(self.root)
        for part in loc:
            found = _child(node, part)
            if found is None:
                return None
            node, line = found[1], self._line_of(found[0])
        return line

    def item_lines(self, loc: Loc) -> list[int]:
        """Return the line of each item of the list at a place."""
        node = self.root
        for part in loc:
            found = _child(node, part)
            node = found[1] if found else None
        return [self._line_of(item) for item in node.value] if isinstance(node, yaml.SequenceNode) else []

    def _line_of(self, node: yaml.Node | None) -> int:
        return self.first_line + (node.start_mark.line if node is not None else 0)


def _child(node: yaml.Node | None, part: str | int) -> tuple[yaml.Node, yaml.Node] | None:
    """Return the node that names a part (its key, or the item itself) and the node of its value."""
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], node.value[part]
    if not isinstance(node, yaml.MappingNode):
        return None
    for key, value in node.value:
        if key.value == part:
            return key, value
    for key, value in node.value:
        if key.tag == PLAIN and key.value == "<<":
            for source in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                if found := _child(source, part):
                    return found
    return None


class _Builder:
    """Nodes to data."""

    def __init__(self, mistake: Callable[[yaml.Node, Loc, str], CaseMistake], *, strict: bool) -> None:
        self.mistake = mistake
        self.strict = strict
        self.seen: set[int] = set()
        self.repeated = 0
        self.top: yaml.Node | None = None

    def build(self, node: yaml.Node, loc: Loc) -> Any:
        if id(node) in self.seen:
            self.repeated += 1 + (len(node.value) // 100 if isinstance(node, yaml.ScalarNode) else 0)
            if self.repeated > MAX_EXPANSION:
                # An alias has no line of its own: the key that holds it is where to look.
                raise self.mistake(self.top or node, loc[:1], f"aliases repeat more than {MAX_EXPANSION:,} values")
        self.seen.add(id(node))
        if len(loc) > MAX_DEPTH:
            raise self.mistake(
                self.top or node, loc[:1], f"nested deeper than {MAX_DEPTH} levels, or an anchor that holds itself"
            )
        if isinstance(node, yaml.ScalarNode):
            return self.scalar(node, loc)
        if node.tag not in COLLECTION_TAGS:
            raise self.foreign_tag(node, loc)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*loc, index)) for index, item in enumerate(node.value)]
        return self.mapping(cast("yaml.MappingNode", node), loc)

    def mapping(self, node: yaml.MappingNode, loc: Loc) -> dict[str, Any]:
        data: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == PLAIN and key_node.value == "<<":
                merged = {**self.merge(value_node, loc), **merged}
                continue
            self.top = self.top if loc else key_node
            key = self.key(key_node, loc)
            if key in data:
                first = _child(node, key)
                line = self.mistake(first[0], (), "").line if first else None
                raise self.mistake(key_node, (*loc, key), f"is given twice; the first is on line {line}; keep one")
            data[key] = self.build(value_node, (*loc, key))
        return {**merged, **data} if merged else data

    def merge(self, node: yaml.Node, loc: Loc) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for source in reversed(node.value) if isinstance(node, yaml.SequenceNode) else [node]:
            part = self.build(source, (*loc, "<<"))
            if not isinstance(part, dict):
                raise self.mistake(source, (*loc, "<<"), "a merge key takes a mapping or a list of mappings")
            data |= part
        return data

    def key(self, node: yaml.Node, loc: Loc) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise self.mistake(node, loc, "a key must be text, not a list or mapping")
        value = self.scalar(node, (*loc, node.value))
        if isinstance(value, str):
            return value
        if not self.strict and node.value:
            return str(node.value)
        raise self.mistake(node, (*loc, node.value), f"a key must be text; write {_quoted(node.value)} in quotes")

    def scalar(self, node: yaml.ScalarNode, loc: Loc) -> Any:
        text: str = node.value
        if node.tag in TEXT_TAGS:
            return text
        if node.tag not in OTHER_SCALAR_TAGS:
            raise self.foreign_tag(node, loc)
        if text in _WORDS:
            return _WORDS[text]
        if text in _SWITCHES:
            if not self.strict:
                return _SWITCHES[text]
            word = "true" if _SWITCHES[text] else "false"
            message = f"{text} without quotes is {word} in YAML 1.1 and text in YAML 1.2; write {word} or '{text}'"
            raise self.mistake(node, loc, message)
        return self.number(node, loc) if text[0] in "0123456789+-." else text

    def number(self, node: yaml.ScalarNode, loc: Loc) -> Any:
        text: str = node.value
        if _INT.match(text):
            if len(text) > 300:
                raise self.mistake(node, loc, f"a number of {len(text)} digits; at most 300 are read")
            return int(text, 0)
        if _ENDLESS.match(text) or (_FLOAT.match(text) and math.isinf(float(text))):
            raise self.mistake(node, loc, f"{text[:40]} is not allowed; write a finite number, or quote it for text")
        if _FLOAT.match(text):
            return float(text)
        for pattern, reading in _DISPUTED:
            if self.strict and pattern.match(text):
                raise self.mistake(
                    node, loc, f"{reading} in {text[:40]}; write {_quoted(text)} for text, or a plain number"
                )
        return text

    def foreign_tag(self, node: yaml.Node, loc: Loc) -> CaseMistake:
        return self.mistake(node, loc, f"the tag {node.tag[:60]!r} is not allowed; write plain values without tags")


def _quoted(text: str) -> str:
    return "'" + text[:40].replace("'", "''") + "'"


def parse_yaml(text: str, name: object, *, strict: bool = True, first_line: int = 1) -> YamlText:
    """Parse one YAML document.

    Args:
        text: The document, without a byte order mark.
        name: The path that mistakes name.
        strict: Whether values that YAML 1.1 and 1.2 read differently (yes, 010, 1:30, a date) are mistakes; otherwise
            yes and no are booleans and the others text, as people mean them.
        first_line: The line of the file on which the text starts.

    Raises:
        CaseMistake: With the line and key of the first thing that is wrong.
    """

    def mistake(node: yaml.Node, loc: Loc, message: str) -> CaseMistake:
        return CaseMistake(str(name), first_line + node.start_mark.line, dotted(loc), message)

    with collector_held():
        try:
            root: yaml.Node | None = _LOADER(text).get_single_node()
        except yaml.MarkedYAMLError as exc:
            mark = exc.problem_mark or exc.context_mark
            line = first_line + (mark.line if mark is not None else 0)
            raise CaseMistake(str(name), line, "", _plain_words(exc, text)) from None
        except yaml.reader.ReaderError as exc:
            line = first_line + text.count("\n", 0, exc.position)
            raise CaseMistake(
                str(name), line, "", f"not YAML: the character {exc.character!r} is not allowed"
            ) from None
        except RecursionError:
            raise CaseMistake(str(name), first_line, "", "not read: nested too deep") from None
        data = None if root is None else _Builder(mistake, strict=strict).build(root, ())
    return YamlText(data, root, first_line)


def dotted(loc: Loc) -> str:
    """Return a place as people write it: `cases[2].checks[0].kind`."""
    parts = []
    for part in loc:
        if isinstance(part, int):
            parts.append(f"[{part}]")
        elif re.fullmatch(r"[\w$<-]+", part):
            parts.append(f".{part}" if parts else part)
        else:
            parts.append(f"[{part[:60]!r}]")
    return "".join(parts)


def _plain_words(exc: yaml.MarkedYAMLError, text: str) -> str:
    """Return what is wrong with the syntax, and the usual way out, in one line."""
    problem = " ".join(str(exc.problem or exc.context or "cannot be parsed").split())
    mark = exc.problem_mark
    lines = text.splitlines()
    line = lines[mark.line] if mark is not None and mark.line < len(lines) else ""
    if "\t" in line[: len(line) - len(line.lstrip())] or "'\\t'" in problem:
        hint = "; YAML is indented with spaces, never with tabs"
    elif "mapping values are not allowed" in problem:
        hint = "; text that holds ': ' needs quotes"
    elif "another document" in problem or "but found another" in problem:
        hint = "; a file holds one document: put several cases under `cases:`"
    elif "alias" in problem:
        hint = "; an alias needs its anchor before it, and text that starts with * needs quotes"
    else:
        hint = ""
    return f"not YAML: {problem}{hint}"
