"""Models whose fields' docstrings are descriptions in their JSON Schema.

pydantic can take them in when a class is made (`use_attribute_docstrings`), but then every session pays for parsing the
source; they are needed only when a schema is.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import textwrap
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic.fields import FieldInfo

__all__ = ["Described"]


class Described:
    """Makes the JSON Schema of a pydantic model have the string below a field as the field's description."""

    model_fields: ClassVar[dict[str, FieldInfo]]

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: GetJsonSchemaHandler, /) -> dict[str, Any]:
        """Make the schema as pydantic does, and describe its properties."""
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for owner in cls.__mro__:
            for field, text in _docstrings(owner).items():
                alias = cls.model_fields[field].serialization_alias or cls.model_fields[field].alias
                for name in {field, alias} & properties.keys():
                    properties[name].setdefault("description", text)
        return schema


@functools.cache
def _docstrings(cls: type) -> dict[str, str]:
    """Return the docstrings of the fields that a class itself defines."""
    if cls is Described or not issubclass(cls, Described):
        return {}
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    texts = {}
    body = getattr(definition, "body", [])
    for field, below in itertools.pairwise(body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                texts[name] = inspect.cleandoc(text)
    return texts
