"""`skilleval schema`: the JSON Schema of case files and of report.json."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from typing import Any

from pytest_skilleval.cases import case_schema
from pytest_skilleval.results import Report

from .answer import Answer

__all__ = ["REPORT_SCHEMA_ID", "add_arguments", "report_schema", "run"]

REPORT_SCHEMA_ID = "https://pytest-skilleval.readthedocs.io/en/latest/report.schema.json"
EXAMPLES = """\
examples:
  skilleval schema > case.schema.json             for editors: `# yaml-language-server: $schema=case.schema.json`
  skilleval schema --report > report.schema.json  for programs that read report.json
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("--report", action="store_true", help="of report.json, instead of case files")


def run(arguments: Namespace) -> Answer:
    """Print a schema."""
    schema = report_schema() if arguments.report else case_schema()
    return Answer(schema, json.dumps(schema, indent=2, ensure_ascii=True).splitlines())


def report_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of report.json as it is written; readers ignore keys they don't know."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": REPORT_SCHEMA_ID,
        **Report.model_json_schema(mode="serialization"),
    }
