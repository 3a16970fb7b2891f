"""Builds the documentation: Sphinx, MyST and Furo, with tables that are made from the code (tables.py)."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from sphinx.application import Sphinx

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import tables  # noqa: E402 - it lies beside this file

project = "pytest-skilleval"
author = "the pytest-skilleval contributors"
copyright = f"2026, {author}"
release = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
version = release

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["_build"]
# `--flag` is no dash.
smartquotes = False
# Docstrings write code as Markdown does.
default_role = "code"
html_theme = "furo"
html_title = f"pytest-skilleval {release}"
html_copy_source = False

myst_heading_anchors = 3
myst_enable_extensions = ["attrs_block"]
autodoc_typehints = "description"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
napoleon_google_docstring = True
# A line that starts with `$` is what to type; the rest is what is printed.
copybutton_prompt_text = r"\$ |>>> "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True


class TableOf(SphinxDirective):
    """A table that is made from the code: ``{table-of} options``."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the table's Markdown."""
        return self.parse_text_to_nodes(tables.PAGES[self.arguments[0]](), allow_section_headings=True)


def write_schemas(app: Sphinx, problem: Exception | None) -> None:
    """Put the JSON Schemas where their own ids say that they are."""
    if problem is None and app.builder.format == "html":
        for name, text in tables.schemas().items():
            (Path(app.outdir) / name).write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive and the schemas."""
    app.add_directive("table-of", TableOf)
    app.connect("build-finished", write_schemas)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
