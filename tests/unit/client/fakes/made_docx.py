"""Word documents of the parts that the reader looks at."""

from collections.abc import Mapping
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

_NAMESPACE = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'

_LEVELS = "".join(f'<w:lvl w:ilvl="{level}"><w:numFmt w:val="bullet"/></w:lvl>' for level in range(2))
_LISTS = f"""<w:abstractNum w:abstractNumId="0">{_LEVELS}</w:abstractNum>
<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>"""


def make_docx(
    path: Path, body: str, *, styles: Mapping[str, str] | None = None, title: str = "", head: str = ""
) -> None:
    """Writes a document with this content of its body, names of styles by their ids, and a title."""
    style = '<w:style w:type="paragraph" w:styleId="{}"><w:name w:val="{}"/></w:style>'.format
    named = "".join(style(*item) for item in (styles or {}).items())
    about = f'<a xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{title}</dc:title></a>'
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", f"{head}<w:document {_NAMESPACE}><w:body>{body}</w:body></w:document>")
        archive.writestr("word/styles.xml", f"<w:styles {_NAMESPACE}>{named}</w:styles>")
        archive.writestr("word/numbering.xml", f"<w:numbering {_NAMESPACE}>{_LISTS}</w:numbering>")
        archive.writestr("docProps/core.xml", about)
