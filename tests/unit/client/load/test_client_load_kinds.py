"""Files of every kind as documents, and files that would break their reader."""

import email.message
import gzip
import io
import json
import mailbox
import os
import resource
import struct
import zipfile
from importlib.util import find_spec

import pytest
from facets_client.documents.files import Columns, DocumentFiles
from facets_client.load.formats import InputFile, find_files
from facets_client.load.rows import FileEnd, ReadOptions, Rejection
from facets_client.load.source import InputError
from made_docx import make_docx
from made_pdf import make_pdf

NEEDED = ("lxml", "mammoth", "markdown_it", "pypdfium2", "python_calamine", "pptx", "mailparser_reply", "oxmsg")
pytestmark = pytest.mark.skipif(not all(map(find_spec, NEEDED)), reason="the extra 'files' is not installed")

ODF = 'xmlns:o="o:office" xmlns:t="o:text" xmlns:a="o:table" xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0" xmlns:p="o:p"'  # noqa: E501
ROW = "<a:table-row><a:table-cell><t:p>{}</t:p></a:table-cell><a:table-cell><t:p>{}</t:p></a:table-cell></a:table-row>"
SCHEMAS = ("office", "text", "table")
OLD_MAIL = """From: Ann <ann@x.org>\nSubject: =?utf-8?q?Caf=C3=A9?=\nDate: Tue, 3 Mar 2026 10:00:00 +0100
Message-ID: <2@x>\nReferences: <1@x>\n\nOrder forty.\n\nOn Mon, 2 Mar 2026 at 09:00, Bob <b@x.org> wrote:
> How many?\n\n-- \nAnn Berg\nHead of office\n"""
SLACK = {
    "users.json": [{"id": "U1", "profile": {"real_name": "Ann Berg"}}, {"id": "U2", "name": "bob"}],
    "channels.json": [{"id": "C1", "name": "general"}],
    "general/2026-03-01.json": [
        {"user": "U1", "text": "Lunch, <@U2>? <https://a.b/c|menu> &amp; more", "ts": "1772355600.1", "thread_ts": "7"},
        {"user": "U2", "text": "At noon.", "ts": "1772355700.1", "thread_ts": "7"},
        {"user": "U2", "text": "has joined", "subtype": "channel_join", "ts": "1772355800.1"},
        {"user": "U2", "text": "It is down.", "ts": "1772399800.1"},
    ],
    "general/2026-03-02.json": [{"user": "U1", "text": "Fixed.", "ts": "1772400100.1"}],
}
CALENDAR = """BEGIN:VCALENDAR\nBEGIN:VEVENT\nUID:1@x\nSUMMARY:Swim\\, run\nDTSTART;TZID=Europe/Berlin:20260612T140000
DURATION:PT1H30M\nRRULE:FREQ=WEEKLY;BYDAY=MO,-1FR;UNTIL=20261221T0000Z\nLOCATION:Pool
ATTENDEE;CN="Nair: P":mailto:p@x.org\nDESCRIPTION:Bring a\n  towel.\nBEGIN:VALARM\nDESCRIPTION:Beep\nEND:VALARM
END:VEVENT\nBEGIN:VTODO\nSUMMARY:Tax\nDTSTART;VALUE=DATE:20260801\nDTEND;VALUE=DATE:20260815\nRRULE:FREQ=YEARLY
END:VTODO\nEND:VCALENDAR\n""".replace("\n", "\r\n")
EVENT = """# Swim, run\n\nStarts: Friday 12 June 2026, 14:00 (Europe/Berlin)\nLasts: 1 hour 30 minutes
Repeats: weekly on Monday and last Friday until Monday 21 December 2026\nWhere: Pool\nWith: Nair: P (p@x.org)
About: Bring a towel."""
TASK = "# Tax\n\nStarts: Saturday 1 August 2026\nEnds: Friday 14 August 2026\nRepeats: yearly"
CONTACTS = """BEGIN:VCARD\nVERSION:3.0\nUID:7\nFN:Ann Berg\nitem1.TEL;TYPE=CELL,VOICE:+49 170 1\nORG:Pumps;Sales
BDAY:19880514\nADR;TYPE=WORK:;;Wall 1;Bremen;;28195;\nEND:VCARD\nBEGIN:VCARD\nVERSION:2.1\nN:Rohr;Jo;;;\nTEL;HOME:12
BDAY:--0305\nNOTE;ENCODING=QUOTED-PRINTABLE;CHARSET=UTF-8:F=C3=BCr =\nAnn\nEND:VCARD\n"""
ANN_CARD = """# Ann Berg\n\nCompany: Pumps, Sales\nPhone (mobile): +49 170 1
Address (work): Wall 1, Bremen, 28195\nBirthday: 14 May 1988"""
JO_CARD = "# Jo Rohr\n\nPhone (home): 12\nBirthday: 5 March\nNote: F\u00fcr Ann"
TEAMS = {
    "value": [
        {
            "id": str(number),
            "messageType": "message",
            "createdDateTime": f"2026-03-01T10:0{number}:00Z",
            "from": {"user": {"displayName": name}},
            "body": {"contentType": "html", "content": f"<p>{text}</p>"},
        }
        for number, name, text in ((2, "Bob", "At <b>ten</b>."), (1, "Ann", "When?"))
    ]
}


def archive(**files):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in files.items():
            target.writestr(name, content)
    return data.getvalue()


def docx(path):
    make_docx(
        path, "<w:p><w:pPr><w:pStyle w:val='h'/></w:pPr><w:r><w:t>Rules</w:t></w:r></w:p>", styles={"h": "heading 1"}
    )


def pptx(path):
    from pptx import Presentation
    from pptx.util import Inches

    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text, slide.placeholders[1].text_frame.text = "Plan", "Ship search"
    slide.notes_slide.notes_text_frame.text = "In May."
    table = slide.shapes.add_table(2, 2, *[Inches(1)] * 4).table
    for index, text in enumerate(("Item", "Euro", "Lamp", "9")):
        table.cell(index // 2, index % 2).text = text
    deck.save(path)


def xlsx(path):
    import xlsxwriter

    with xlsxwriter.Workbook(path) as book:
        for name, rows in {
            "Prices": [["Our prices"], [], ["Lamp", "Euro"], ["Red", 9.5], ["Blue", 10]],
            "Tickets": [["title", "description"], ["Printer", "It does not print since yesterday."]],
        }.items():
            sheet = book.add_worksheet(name)
            for number, row in enumerate(rows):
                sheet.write_row(number, 0, row)


def ods(path):
    rows = "".join(ROW.format(*values) for values in (("Lamp", "Euro"), ("Red", "9.5")))
    rows = rows.replace("a:table-", "table:table-").replace("t:p>", "text:p>")
    schemas = " ".join(f"xmlns:{name}='urn:oasis:names:tc:opendocument:xmlns:{name}:1.0'" for name in SCHEMAS)
    content = f"<office:body {schemas}><table:table table:name='Prices'>{rows}</table:table></office:body>"
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    path.write_bytes(archive(mimetype=kind, **{"content.xml": content, "META-INF/manifest.xml": "<a/>"}))


def msg(path):
    """A compound file with a stream for each property, as Outlook writes it."""
    values = {0x37: "Re: Pump", 0x1000: "It leaks.", 0x7D: "From: Ann <ann@x.org>\nTo: b@x.org\nMessage-ID: <1@x>\n"}
    streams = {f"__substg1.0_{key:04X}001F": text.encode("utf-16-le") for key, text in values.items()}
    entries = b"".join(struct.pack("<HHIQ", 0x1F, key, 6, 0) for key in values)
    streams["__properties_version1.0"] = bytes(32) + entries
    table, folder, data = [-3, 2, -2], [("Root Entry", 5, 1, -2, 0)], b""  # sectors 0 to 2: the table and the folder
    for number, (name, value) in enumerate(streams.items(), start=1):
        blank = bytes(16) if name.startswith("__prop") else " ".encode("utf-16-le")
        value += blank * ((4096 - len(value)) // len(blank))  # shorter streams would lie elsewhere
        folder.append((name, 2, number + 1 if number < len(streams) else -1, len(table), len(value)))
        table += [*range(len(table) + 1, len(table) + 8), -2]
        data += value.ljust(4096, b"\0")
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH", 62, 3, 65534, 9, 6)
    header += bytes(10) + struct.pack("<IIIIiIiI", 1, 1, 0, 4096, -2, 0, -2, 0) + struct.pack("<109i", 0, *[-1] * 108)
    written = b"".join(
        name.encode("utf-16-le").ljust(64, b"\0")
        + struct.pack("<HBBiii", 2 * len(name) + 2, kind, 1, -1, -1 if kind == 5 else after, 1 if kind == 5 else -1)
        + bytes(36)
        + struct.pack("<iQ", start, size)
        for name, kind, after, start, size in folder
    )
    path.write_bytes(
        header + struct.pack("<128i", *table, *[-1] * (128 - len(table))) + written.ljust(1024, b"\0") + data
    )


def opendocument(body):
    return archive(**{"content.xml": f"<o:body {ODF}>{body}</o:body>", "meta.xml": "<a/>"})


def mbox(path):
    box = mailbox.mbox(path)
    box.add(OLD_MAIL)
    message = email.message.EmailMessage()
    message["Subject"], message["Message-ID"] = "Report", "<9@x>"
    message.set_content("See the file.\n\n> Which one?")
    message.add_attachment(b"# Sales\n\nNine percent.", maintype="text", subtype="markdown", filename="sales.md")
    message.add_attachment(b"\x89PNG\r\n\x1a\n\0\0", maintype="image", subtype="png", filename="logo.png")
    box.add(message)
    box.close()


def parquet(path):
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table({"text": ["Tea is hot."], "n": [1]}), path)


ANN = {"title": "Caf\u00e9", "from": "Ann <ann@x.org>", "date": "2026-03-03T10:00:00+01:00", "thread": "1@x"}
TABLE = "| Lamp | Euro |\n| --- | --- |\n| Red | 9.5 |"
# File name, its content or function that writes it, and documents as {id after the file's name: (text, payload)}.
KINDS = {
    "a.txt": ("Turn the valve.", {"": ("Turn the valve.", {})}),
    "a.md": ("# Fog\n\nThick *fog*.", {"": ("# Fog\n\nThick fog.", {"title": "Fog"})}),
    "a.rst": (
        "Fog\n===\n\nUse :cmd:`pip` or `docs <u>`_.\n\n.. toctree::\n   a\n\n.. note:: Careful.\n\nSee\n---\n\n- one\n",
        {"": ("# Fog\n\nUse pip or docs.\n\nCareful.\n\n## See\n\n- one", {"title": "Fog"})},
    ),
    "a.html": ("<title>T</title><nav>no</nav><h1>Leave</h1>Ask.", {"": ("# Leave\n\nAsk.", {"title": "T"})}),
    "a.pdf": (
        lambda path: make_pdf(path, ["Lease", "", "Deposit"]),
        {"#1": ("Lease", {"page": 1}), "#3": ("Deposit", {"page": 3})},
    ),
    "a.docx": (docx, {"": ("# Rules", {"title": "Rules"})}),
    "a.pptx": (
        pptx,
        {
            "#1": (
                "# Plan\n\n- Ship search\n\n| Item | Euro |\n| --- | --- |\n| Lamp | 9 |\n\nNotes: In May.",
                {"title": "Plan", "slide": 1},
            )
        },
    ),
    "a.xlsx": (
        xlsx,
        {
            "/Prices#4": (
                f"# Prices\n\nOur prices\n\n{TABLE}\n| Blue | 10 |",
                {"title": "Prices Our prices", "sheet": "Prices"},
            ),
            "/Tickets#2": ("It does not print since yesterday.", {"title": "Printer"}),
        },
    ),
    "a.odt": (
        opendocument(
            '<t:h t:outline-level="2">Who</t:h><t:p>Ann<t:s/>came.</t:p>'
            "<t:list><t:list-item><t:p>one</t:p></t:list-item></t:list>"
            f"<a:table>{ROW.format('Lamp', 'Euro')}{ROW.format('Red', '9.5')}</a:table>"
        ),
        {"": (f"## Who\n\nAnn came.\n\n- one\n\n{TABLE}", {"title": "Who"})},
    ),
    "a.odp": (
        opendocument(
            '<draw:page><draw:frame p:class="title"><t:p>Goals</t:p></draw:frame><t:p>Sell.</t:p></draw:page>'
        ),
        {"": ("# Goals\n\nSell.", {"title": "Goals", "slide": 1})},
    ),
    "a.epub": (
        archive(
            **{
                "META-INF/container.xml": '<c><rootfile full-path="b/c.opf"/></c>',
                "b/c.opf": '<p xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>The Whale</dc:title>'
                '<item id="a" href="one%201.xhtml"/><itemref idref="a"/></p>',
                "b/one 1.xhtml": "<?xml version='1.0'?><html><body><h2>Loomings</h2><p>Call me.</p></body></html>",
            }
        ),
        {"#1": ("## Loomings\n\nCall me.", {"title": "Loomings", "book": "The Whale", "chapter": 1})},
    ),
    "a.eml": (OLD_MAIL, {"": ("Order forty.", ANN)}),
    "a.mbox": (
        mbox,
        {
            "#2@x": ("Order forty.", ANN),
            "#9@x": ("See the file.", {"title": "Report", "thread": "9@x", "attachments": ["sales.md", "logo.png"]}),
            "/2/sales.md": ("# Sales\n\nNine percent.", {"title": "Sales"}),
        },
    ),
    "a.msg": (
        msg,
        {"": ("It leaks.", {"title": "Re: Pump", "from": "Ann <ann@x.org>", "to": "b@x.org", "thread": "1@x"})},
    ),
    "a.ics": (CALENDAR, {"#1@x": (EVENT, {"title": "Swim, run"}), "#Tax": (TASK, {"title": "Tax"})}),
    "a.vcf": (CONTACTS, {"#7": (ANN_CARD, {"title": "Ann Berg"}), "#Jo Rohr": (JO_CARD, {"title": "Jo Rohr"})}),
    "a.ods": (ods, {"/Prices#2": (f"# Prices\n\n{TABLE}", {"title": "Prices", "sheet": "Prices"})}),
    "a.csv": ('subject,description\nSlow,"It is\nvery, slow"\n', {"#2": ("It is\nvery, slow", {"title": "Slow"})}),
    "a.json": (
        json.dumps({"page": 1, "rows": [{"note": {"body": "Ice.", "title": "I", "by.x": 1}, "tags": ["a"]}]}, indent=1),
        {"#1": ("Ice.", {"title": "I", "note": {"by.x": 1}, "tags": ["a"]})},
    ),
    "a.jsonl": ('{"note":{"body":"Owls."}}\n', {"#1": ("Owls.", {})}),
    "a.parquet": (parquet, {"#1": ("Tea is hot.", {"n": 1})}),
    "a.zip": (
        archive(
            **{"b/c.md": "Salt.", "x.png": "", "__MACOSX/c.md": "", "~$c.md": "", "in.zip": archive(d="", LICENSE="L.")}
        ),
        {"/b/c.md": ("Salt.", {}), "/in.zip/LICENSE": ("L.", {})},
    ),
    "slack.zip": (
        archive(**{name: json.dumps(value) for name, value in SLACK.items()}),
        {
            "#general/2026-03-01T09:00:00+00:00/7": (
                "Ann Berg: Lunch, @bob? menu & more\nbob: At noon.",
                {
                    "title": "general, 2026-03-01",
                    "channel": "general",
                    "participants": ["Ann Berg", "bob"],
                    "date": "2026-03-01T09:00:00+00:00",
                },
            ),
            "#general/2026-03-01T21:16:40+00:00": (
                "bob: It is down.\nAnn Berg: Fixed.",
                {
                    "title": "general, 2026-03-01",
                    "channel": "general",
                    "participants": ["bob", "Ann Berg"],
                    "date": "2026-03-01T21:16:40+00:00",
                },
            ),
        },
    ),
    "teams.json": (
        json.dumps(TEAMS),
        {
            "#2026-03-01T10:01:00+00:00": (
                "Ann: When?\nBob: At ten.",
                {"title": "2026-03-01", "participants": ["Ann", "Bob"], "date": "2026-03-01T10:01:00+00:00"},
            )
        },
    ),
    "whatsapp.txt": (
        "3/14/26, 9:01 AM - Messages are encrypted.\n3/14/26, 9:01 AM - Ann: Who buys\nmilk?\n"
        "3/14/26, 9:02 PM - Bob: Me\n",
        {
            "#2026-03-14T09:01:00+00:00": (
                "Ann: Who buys\nmilk?",
                {"title": "2026-03-14", "participants": ["Ann"], "date": "2026-03-14T09:01:00+00:00"},
            ),
            "#2026-03-14T21:02:00+00:00": (
                "Bob: Me",
                {"title": "2026-03-14", "participants": ["Bob"], "date": "2026-03-14T21:02:00+00:00"},
            ),
        },
    ),
    "a.srt": (
        "1\n00:00:01,000 --> 00:00:02,000\n<i>ANN: Hello,</i>\n\n2\n00:00:03,000 --> 00:00:04,000\nmy friend.\n",
        {"": ("ANN: Hello, my friend.", {})},
    ),
    "a.vtt": (
        "WEBVTT\n\nNOTE x\n\n00:01.000 --> 00:04.000 align:start\n<v Roger>In <c.loud>York</c>.\n",
        {"": ("Roger: In York.", {})},
    ),
}


def write(path, content):
    if callable(content):
        content(path)
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(path, **limits):
    options = ReadOptions(**limits)
    with DocumentFiles(find_files([str(path)], options), Columns(), options) as files:
        return list(files.read())


@pytest.mark.parametrize("name", KINDS)
def test_a_file_of_each_kind_becomes_its_documents(tmp_path, name):
    content, expected = KINDS[name]
    *records, end = read(write(tmp_path / name, content))
    assert {record.item.id: (record.item.text, record.item.payload) for record in records} == {
        name + key: value for key, value in expected.items()
    }
    assert end == FileEnd(name, True)


FAR = "<worksheet xmlns='{0}'><sheetData><row r='1048576'><c r='XFD1048576'><v>1</v></c></row><row r='1'><c r='A1'><v>1</v></c></row></sheetData></worksheet>"  # noqa: E501
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
RELATIONS = "<Relationships xmlns='http://schemas.openxmlformats.org/package/2006/relationships'>{}</Relationships>"
ENTITIES = "<!DOCTYPE a [<!ENTITY a 'aaaaaaaaaa'>{}]>".format(
    "".join(f"<!ENTITY {name} '{f'&{before};' * 10}'>" for before, name in zip("abcdefghi", "bcdefghij", strict=True))
)
HUGE_SHEET = archive(
    **{
        "_rels/.rels": RELATIONS.format(
            f"<Relationship Id='a' Type='{OFFICE}/officeDocument' Target='xl/workbook.xml'/>"
        ),
        "xl/workbook.xml": f"<workbook xmlns='{MAIN}' xmlns:r='{OFFICE}'><sheets><sheet name='S' r:id='b'/></sheets>"
        "</workbook>",
        "xl/_rels/workbook.xml.rels": RELATIONS.format(
            f"<Relationship Id='b' Type='{OFFICE}/worksheet' Target='s.xml'/>"
        ),
        "xl/s.xml": FAR.format(MAIN),
    }
)
LOCKED = (
    archive(**{"a.txt": "secret"})
    .replace(b"PK\x03\x04\x14\0\0", b"PK\x03\x04\x14\0\1")
    .replace(b"PK\x01\x02\x14\x03\x14\0\0", b"PK\x01\x02\x14\x03\x14\0\1")
)
DEEP = "deep"
for _ in range(6):
    DEEP = archive(**{"in.zip" if isinstance(DEEP, bytes) else "a.txt": DEEP})
BOMB = archive(**{"word/document.xml": bytes(70_000_000)})
# File name, content, and the reasons or texts that it yields; a word of the message if it is rejected as a whole.
BAD = {
    "archive.zip": (archive(**{"a.xlsx": HUGE_SHEET, "b.txt": "Read on."}), ["damaged_input", "Read on."]),
    "blank.jsonl.gz": (gzip.compress(b"\n" * 300_000_000, 1), "longer to read"),
    **{f"bomb.{suffix}": (BOMB, "word/document.xml unpacks to 70") for suffix in "docx xlsx pptx odt epub".split()},
    "cut.ics": (CALENDAR[:-40], [EVENT, "damaged_input"]),
    "cut.zip": (archive(a="b")[:-8], "damaged"),
    "deep.zip": (DEEP, ["unreadable_file"]),
    "disguised.pdf": (archive(**{"word/document.xml": "<a/>"}), "expected a PDF"),
    "empty.docx": (b"", "is empty"),
    "entities.docx": (archive(**{"word/document.xml": f"{ENTITIES}<a>&j;</a>"}), "amplification"),
    "entities.odt": (archive(**{"content.xml": f"{ENTITIES}<a>&j;</a>", "meta.xml": "<a/>"}), "amplification"),
    "items.md.gz": (gzip.compress(b"- a\n" * 4_000_000, 1), "more memory"),
    "line.jsonl.gz": (
        gzip.compress(b'{"id": "a", "text": "' + b"a" * 400_000_000 + b'"}\n{"id": "b", "text": "good"}\n', 1),
        ["line_too_long", "good"],
    ),
    "locked.zip": (LOCKED, ["unreadable_file"]),
    "mail.mbox": (b"no mail", "expected a mailbox"),
    "members.zip": (archive(**{str(number): "" for number in range(40)}), "the limit is 30"),
    "old.docx": (b"\xd0\xcf\x11\xe0" + bytes(600), "encrypted, or of an old version"),
    "rich.txt": (b"{\\rtf1 Hello}", "expected text, got RTF"),
    "pictures.pptx": (archive(**{"a.png": bytes(50_000_000)}), "more than the limit, 40,000,000 bytes"),
    "right\u202eleft\n.txt": (b"Shown escaped.", ["Shown escaped."]),
    "sheet.xlsx": (HUGE_SHEET, "more than 300 MiB"),
    "zeros.zip": (archive(**{"a.txt": bytes(50_000_000)}), ["unreadable_file"]),
    "~good.txt": (b"Stored.", ["Stored."]),
}


def test_hostile_files_are_listed_with_their_reasons_and_the_others_are_read(tmp_path):
    for name, (content, _) in BAD.items():
        write(tmp_path / name, content)
    limits = {"time_s": 5, "memory_bytes": 300 * 2**20, "unpacked_bytes": 40_000_000, "num_members": 30}
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    records = read(tmp_path, **limits)
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024  # a child begins as a copy of this process
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024 < max(before, own, 300) + 60
    by_file = {name: [] for name in BAD}
    names = {ascii(name)[1:-1]: name for name in BAD}
    for record in records:
        if not isinstance(record, FileEnd):
            by_file[names[record.file]].append(record)
    for name, (_, expected) in BAD.items():
        if isinstance(expected, str):
            (rejection,) = by_file[name]
            assert (rejection.line, rejection.reason) == (0, "unreadable_file") and expected in rejection.message
        else:
            assert [one.reason if isinstance(one, Rejection) else one.item.text for one in by_file[name]] == expected
    complete = [end.file for end in records if isinstance(end, FileEnd) and end.is_complete]
    assert complete == ["line.jsonl.gz", r"right\u202eleft\n.txt", "~good.txt"]


@pytest.mark.parametrize(
    ("change", "reason", "message"),
    [
        (lambda path: os.utime(path, ns=(1, 1)), "changed", "changed while it was read"),
        (os.remove, "damaged_input", "b.jsonl: is no longer there"),
    ],
)
def test_a_file_that_changes_while_it_is_read_is_not_complete(tmp_path, change, reason, message):
    path = write(tmp_path / "a.jsonl", b'{"text": "Words of a line that fill the pipe."}\n' * 50_000)
    with DocumentFiles([InputFile(str(path), "b.jsonl")], Columns(), ReadOptions()) as files:
        records = files.read()
        next(records)
        change(path)
        *_, rejection, end = records
    assert (rejection.reason, end) == (reason, FileEnd("b.jsonl", False)) and message in rejection.message


@pytest.mark.parametrize(
    ("columns", "text", "payload"),
    [
        (Columns(), "Ice.", {"title": "I", "x": {"by.y": 1, "n": 2}, "year": 3}),
        (Columns(text=("x.n", "note.body"), payload=('x."by.y"',)), None, {}),
        (Columns(text=("note.title",), payload=('x."by.y"', "id")), "I", {"x": {"by.y": 1}, "id": 7.0}),
        (Columns(text=("note.boddy",)), "did you mean 'note.body'?", {}),
    ],
)  # fmt: skip
def test_columns_within_objects(tmp_path, columns, text, payload):
    row = {"id": 7.0, "note": {"body": "Ice.", "title": "I"}, "x": {"by.y": 1, "n": 2}, "payload": {"year": 3}}
    path = write(tmp_path / "a.json", json.dumps([row]))
    with DocumentFiles([InputFile(str(path), "a.json")], columns, ReadOptions()) as files:
        if text and text.startswith("did"):
            with pytest.raises(InputError) as caught:
                files.check()
            assert caught.value.hint == text
            return
        record = next(files.read())
    assert (
        record.reason == "invalid_text" if text is None else (record.item.text, record.item.payload) == (text, payload)
    )


def test_a_missing_reader_costs_only_its_files(tmp_path, monkeypatch):
    def missing(extra, *modules):
        raise ImportError(f"{modules} not installed")

    monkeypatch.setattr("facets_client.load.formats.require_extra", missing)
    for name in ("a.parquet", "b.txt"):
        (tmp_path / name).write_text("The pool opens at nine.")
    files = [InputFile(str(tmp_path / name), name) for name in ("a.parquet", "b.txt")]
    with (
        DocumentFiles(files, Columns(), ReadOptions()) as several,
        DocumentFiles(files[:1], Columns(), ReadOptions()) as one,
    ):
        several.check()
        rejected, _, document, _ = several.read()
        assert (rejected.reason, rejected.file, document.file) == ("unreadable_file", "a.parquet", "b.txt")
        with pytest.raises(ImportError, match="pyarrow"):
            one.check()
