# SPDX-License-Identifier: BSD-3-Clause
"""How Sphinx builds these pages; the build asks no server for anything, nor does a page."""

from __future__ import annotations

import re
from typing import Any

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
exclude_patterns = ["reproduction/changes.md"]  # a part of reproduction/index.md
default_role = "py:obj"  # `solve` in a docstring is a link where there is such a thing
suppress_warnings = ["ref.python"]  # the "shape" of "ndarray of shape (K, m)" is no reference

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the signatures in the sources have them, the words say what they mean
autodoc_default_options = {
    # scikit-learn makes these; their texts refer to its own pages
    "exclude-members": "set_fit_request, set_partial_fit_request",
}
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,  # a page of scripts from elsewhere, and times of one build
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


def escape(_app: Any, _what: str, _name: str, _thing: Any, _options: Any, lines: list[str]) -> None:
    """In docstrings |x| is an absolute value and *rest an argument, no markup."""
    for at, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[at] = re.sub(r"\|", r"\|", re.sub(r"(?<=, )\*(?=\w+\))", r"\*", line))


def setup(app: Any) -> None:
    """Sphinx calls it."""
    app.connect("autodoc-process-docstring", escape)
