"""Data files as they lie on disk: plain data that still knows the line of every key."""

from __future__ import annotations

from .datafile import Document, decode, read_document
from .jsonfile import parse_json
from .yamlfile import Loc, dotted, parse_yaml

__all__ = ["Document", "Loc", "decode", "dotted", "parse_json", "parse_yaml", "read_document"]
