"""How the documentation site is built: sphinx-build -W docs docs/_build/html."""

from typing import Any

import psilonnet

project = "psilonnet"
author = "The psilonnet developers"
version = release = psilonnet.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "**/README.md", "sg_execution_times.rst", "auto_examples/*.md5"]
autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"  # there is room for names of methods only
numpydoc_class_members_toctree = False
numpydoc_show_class_members = False
templates_path = ["_templates"]

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_title = "psilonnet"
html_sidebars = {"index": []}
html_theme_options = {
    "show_prev_next": False,
    "navbar_align": "left",
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
}
html_show_sourcelink = False
copyright = "the psilonnet developers, MIT licence"  # noqa: A001

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"(?<!plot_8_)own_loop\.py|serve\.py",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "capture_repr": ("_repr_html_",),
    "show_signature": False,
    "reset_modules": ("matplotlib",),  # the font size of one example is its own
    "min_reported_time": 1e9,
}


def setup(app: Any) -> None:
    """Let docstrings write (*members, out, in) without a thought for the markup."""

    def escape(*arguments: Any) -> None:
        lines: list[str] = arguments[-1]
        lines[:] = [line.replace("(*members", r"(\*members") for line in lines]

    app.connect("autodoc-process-docstring", escape, priority=900)
