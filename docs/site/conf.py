"""The documentation site: every page of the repository, and the Python reference read from the sources.

Built by ``make site``: nothing is imported, so neither PyTorch nor the packages themselves are needed.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

project = "Facets"
copyright = "The Facets authors"
extensions = ["myst_parser", "sphinx.ext.napoleon", "autoapi.extension", "sphinx_copybutton"]

# Pages stay where they are read in the repository, so that their links work in both places.
include_patterns = [
    "docs/**.md",
    "*.md",
    "models/README.md",
    "models/**/README.md",
    "proto/README.md",
    "samples/README.md",
]
root_doc = "docs/site/index"
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}

myst_enable_extensions = ["tasklist"]
myst_heading_anchors = 3

autoapi_dirs = [str(ROOT / "clients" / "facets_client"), str(ROOT / "facets")]
autoapi_root = "docs/site/modules"
autoapi_generate_api_docs = False  # docs/site/reference says what is public; the directives take it from the sources
autoapi_add_toctree_entry = False
autoapi_python_class_content = "both"
napoleon_use_ivar = True  # the attributes of a class are described once, where they stand
autoapi_options = ["members", "show-inheritance"]

suppress_warnings = [
    "autoapi.python_import_resolution",  # names that the programs import late
    "ref.python",  # client and library have classes of one name
]

html_theme = "furo"
html_title = "Facets"
html_copy_source = False
html_extra_path = ["root"]  # leads from / to the first page
