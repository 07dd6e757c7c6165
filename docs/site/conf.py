"""The documentation site: the pages of the repository, and the Python reference read from sources without imports."""

import re
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
    "clients/typescript/README.md",
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
html_copy_source = True  # Markdown, which llms.txt names
html_show_sourcelink = False
html_extra_path = ["root"]  # leads from / to the first page


def _field_comment(path, first, last):
    """The comment beside a field, else the lines of comment above it; backticks are code, as in docstrings."""
    lines = path.read_text(encoding="utf-8").splitlines()
    comment = [lines[last - 1].partition("  # ")[2]]
    while not comment[-1] and lines[first - 2].strip().startswith("#"):
        first -= 1
        comment.insert(0, lines[first - 1].strip("#: "))
    text = " ".join(comment).strip().replace("``", "`").replace("`", "``")
    return text[:1].upper() + text[1:]


def _describe_fields(app, what, name, obj, skip, options):
    """Fields of records say what they are in a comment, which autoapi does not read."""
    if what != "attribute" or obj.docstring or "from_line_no" not in obj.obj or name.rpartition(".")[2][0] == "_":
        return None
    parts = (obj.obj["inherited_from"]["full_name"] if obj.inherited else name).split(".")
    modules = [Path(*parts[:number]).with_suffix(".py") for number in range(len(parts), 0, -1)]
    path = next((root / m for m in modules for root in (ROOT, ROOT / "clients") if (root / m).is_file()), None)
    comment = path and _field_comment(path, obj.obj["from_line_no"], obj.obj["to_line_no"])
    if not comment:
        return None
    obj.docstring = comment
    return False


def _write_llms_txt(app, exception):
    """Writes llms.txt (llmstxt.org), the index of the documentation with links to the Markdown of the pages."""
    if exception or app.builder.name != "html":
        return
    summary = (ROOT / "docs" / "site" / "index.md").read_text(encoding="utf-8").split("\n\n")[1]
    lines = ["# Facets", "", f"> {summary.replace(chr(10), ' ')}"]
    for line in (ROOT / "docs" / "README.md").read_text(encoding="utf-8").splitlines():
        pages, topic = line.strip("|").split("|") if line.startswith("|") else (line, "")
        if line.startswith("## "):
            lines += ["", line, ""]
        for link in re.findall(r"\]\(([^)]+\.md)\)", pages):
            page = (ROOT / "docs" / link).resolve().relative_to(ROOT).with_suffix("")
            title = app.env.titles[str(page)].astext()  # fails for a page that the site lacks
            topic = re.sub(r"\[(.*?)\]\(.*?\)", r"\1", topic).strip()
            lines.append(f"- [{title}](_sources/{page}.md.txt){topic and ': '}{topic}")
    lines += ["", "## Reference", ""]
    lines += [f"- [Python {name}](docs/site/reference/{name}.html)" for name in ("client", "library")]
    (Path(app.outdir) / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def setup(app):
    """Called by Sphinx."""
    app.connect("build-finished", _write_llms_txt)
    app.connect("autoapi-skip-member", _describe_fields)
