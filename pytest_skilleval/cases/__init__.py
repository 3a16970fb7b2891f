"""Case files (YAML, JSON, evals.json, trigger lists) to Case, with the line of each mistake."""

from __future__ import annotations

from pytest_skilleval.documents import dotted

from .casefile import assert_unique, build_case, display_path, lane_of, load_case_file
from .foreign import CasesOfFile, load_cases, load_evals_file, load_trigger_file, sniff
from .leaks import leaks
from .rules import broken_rules
from .schema import case_schema
from .spec import Problem, problems_of, validate_spec

__all__ = [
    "CasesOfFile",
    "Problem",
    "assert_unique",
    "broken_rules",
    "build_case",
    "case_schema",
    "display_path",
    "dotted",
    "lane_of",
    "leaks",
    "load_case_file",
    "load_cases",
    "load_evals_file",
    "load_trigger_file",
    "problems_of",
    "sniff",
    "validate_spec",
]
