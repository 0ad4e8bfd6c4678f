"""How the documentation is built: ``make -C docs html``."""

import os
import sys
from pathlib import Path

import stitchwork

sys.path.insert(0, str(Path(__file__).parent))  # gallery_order, gallery_thumbnails
from gallery_thumbnails import crop_thumbnails

os.environ.setdefault("MPLBACKEND", "Agg")

project = "stitchwork"
author = "the stitchwork developers"
version = release = stitchwork.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "sphinx-mathjax-offline",  # mathematics without a network
]
exclude_patterns = ["_build", "gallery/GALLERY_HEADER.rst", "sg_execution_times.rst", "gallery/sg_execution_times.rst"]
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_heading_anchors = 3
default_role = "py:obj"  # `name` in docstrings: a link where there is such a name, code elsewhere
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

autodoc_typehints = "none"  # types stand in the docstrings, with shapes
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True  # attributes as a list: those that are properties have entries of their own

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": "plot_",
    "within_subsection_order": "gallery_order.reading_order",
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 60,
    "plot_gallery": "True",
    "abort_on_example_error": True,
    "thumbnail_size": (480, 336),
}

html_theme = "pydata_sphinx_theme"
html_title = f"stitchwork {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["reproduction/report.html"]
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "stitchwork"},
    "header_links_before_dropdown": 5,
    "navbar_align": "left",
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
}
html_sidebars = {"index": []}
copyright = "the stitchwork developers, BSD-3-Clause"


def setup(app):
    """Thumbnails of one panel, once the gallery has drawn its pictures."""
    app.connect("builder-inited", crop_thumbnails, priority=900)
