"""The JSON Schema of a case file, for editors."""

from __future__ import annotations

import copy
from typing import Any

from pytest_skilleval.casespec import CaseSpec

__all__ = ["SCHEMA_ID", "case_schema"]

SCHEMA_ID = "https://pytest-skilleval.readthedocs.io/en/latest/case.schema.json"


def case_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a case file: one case, or `cases` with `defaults`."""
    case = CaseSpec.model_json_schema(ref_template="#/$defs/{model}")
    definitions: dict[str, Any] = case.pop("$defs")
    for definition in definitions.values():
        if (kind := definition.get("properties", {}).get("kind")) is not None:
            kind.setdefault("description", "Which kind of check this is.")
    names_schema = {"type": "string", "description": "The address of this schema, for editors of JSON files."}
    item = copy.deepcopy(case)
    # With `defaults`, what a single case must have may stand there.
    item.pop("required", None)
    item["title"] = "Case of a file with several"
    defaults = copy.deepcopy(item)
    defaults["properties"].pop("id")
    defaults |= {"title": "Defaults", "description": "What the cases share: mappings are merged, all else is replaced."}
    single = copy.deepcopy(case)
    single["properties"]["$schema"] = names_schema
    several = {
        "title": "Several cases",
        "description": "A file with several cases.",
        "type": "object",
        "properties": {
            "$schema": names_schema,
            "defaults": {"$ref": "#/$defs/Defaults"},
            "cases": {
                "title": "Cases",
                "description": "The cases; each has an `id`.",
                "type": "array",
                "minItems": 1,
                "items": {"$ref": "#/$defs/CaseItem"},
            },
        },
        "required": ["cases"],
        "additionalProperties": False,
    }
    definitions |= {"SingleCase": single, "CaseItem": item, "Defaults": defaults, "SeveralCases": several}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": "pytest-skilleval case file",
        "description": "One eval case, or several with what they share.",
        "type": "object",
        "if": {"required": ["cases"]},
        "then": {"$ref": "#/$defs/SeveralCases"},
        "else": {"$ref": "#/$defs/SingleCase"},
        "$defs": dict(sorted(definitions.items())),
    }
