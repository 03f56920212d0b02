"""Configuration of the documentation site, which `make docs` builds."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from dprec import __version__

project = "dprec"
author = "The authors of dprec"
release = version = __version__
html_title = "dprec"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme = "furo"
html_show_copyright = False
html_math_renderer = "mathml"

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinxcontrib.bibtex",
    "myst_nb",
    "docs.extensions",
]
exclude_patterns = ["_build", "**.ipynb_checkpoints"]
default_role = "code"

# Pages are also read on GitHub, where headings have anchors of their own.
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4

# A notebook is stored without outputs; one that fails fails the build.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120

bibtex_bibfiles = ["../dprec/references.bib"]
bibtex_default_style = "keys"

autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_type_aliases = {"ArrayLike": "ArrayLike"}
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_param = False

# What autodoc names in signatures and has no page here: other projects, and what a package does not export.
nitpick_ignore_regex = [
    (r"py:.*", r"(?!(dprec|clients|strategies|simulation)\b).*"),
    (r"py:.*", r"(dprec|clients|strategies|simulation)\.[\w.]+\.\w+"),
]
