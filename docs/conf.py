# SPDX-License-Identifier: BSD-3-Clause
"""Configuration of the Sphinx build. Neither the build nor a page contacts a server."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes

import sipower

project = "sipower"
author = "The sipower developers"
copyright = author  # noqa: A001 - Sphinx's name for it
version = release = sipower.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["templates"]
exclude_patterns = ["reproduction/changes.md", "benchmark/*.md"]  # included in other pages
default_role = "py:obj"  # `solve` in a docstring becomes a link if the reference has such a name
suppress_warnings = ["ref.python"]  # the "shape" in "ndarray of shape (K, m)" is not a reference

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autosummary_generate = True
toc_object_entries_show_parents = "hide"  # the contents of a page list fit(), not KLNMF.fit()
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings describe the types in words
autodoc_default_options = {
    # scikit-learn generates these; their docstrings link to its own pages
    "exclude-members": "set_fit_request, set_partial_fit_request, set_transform_request, "
    "set_score_request",
}
napoleon_google_docstring = False
napoleon_use_param = False  # parameters that share a description stay in one entry
napoleon_custom_sections = [("Attributes", "params_style")]  # and so do attributes
napoleon_use_rtype = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,  # that page loads scripts from a server
    "min_reported_time": 3600,
    "capture_repr": (),
    "abort_on_example_error": True,
}

html_theme = "pydata_sphinx_theme"
html_title = f"sipower {release}"
html_show_sourcelink = False
html_static_path = ["static"]
html_css_files = ["narrow.css"]
html_theme_options = {
    "navbar_align": "left",
    "navigation_depth": 2,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": [], "getting_started": []}


LONG_CODE = 20  # characters of a word


def escape(_app: Any, _what: str, _name: str, _thing: Any, _options: Any, lines: list[str]) -> None:
    """Escape | and * in docstrings, where |x| is an absolute value and *rest an argument."""
    for at, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[at] = re.sub(r"\|", r"\|", re.sub(r"(?<=, )\*(?=\w+\))", r"\*", line))


def keep_colons(
    _app: Any, what: str, _name: str, _thing: Any, _options: Any, lines: list[str]
) -> None:
    """Keep napoleon from reading "Words: more words" in a property's docstring as its type."""
    if what == "property":
        lines[:0] = ["..", ""]  # an empty comment, which is all that napoleon looks at


def mark_long_code(_app: Any, doctree: Any, _name: str) -> None:
    """Give code that contains a long path or name the class `long`; narrow.css lets it break."""
    for literal in doctree.findall(nodes.literal):
        if max(map(len, literal.astext().split()), default=0) > LONG_CODE:
            literal["classes"].append("long")


def setup(app: Any) -> None:
    """Connect the functions above; Sphinx calls this function."""
    app.connect("autodoc-process-docstring", keep_colons, priority=400)  # before napoleon
    app.connect("autodoc-process-docstring", escape)
    app.connect("doctree-resolved", mark_long_code)
