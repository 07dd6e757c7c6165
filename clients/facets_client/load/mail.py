"""Mail: one document per message, without quoted text and signatures; attachments are files of their own."""

import email
import io
from collections.abc import Iterator
from email.message import EmailMessage
from email.policy import default as policy
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, BinaryIO

from facets_client.load.pages import HtmlPage, document, read_whole
from facets_client.load.rows import Items, Member, ReadOptions, Rejection, Row
from facets_client.load.source import DAMAGED, Source

_MAX_MESSAGE_BYTES = 64 * 2**20
_MAX_REPLY_CHARS = 2**16  # longer texts are taken whole: the search for quoted text would take too long
_MAX_LINE_CHARS = 1_000
_LANGUAGES = ["en", "de", "fr", "es", "it", "nl", "pl", "sv", "da", "cs", "ja", "ko", "zh"]


def read_eml(source: Source, options: ReadOptions) -> Items:
    """One message."""
    data = read_whole(source)
    yield from [data] if isinstance(data, Rejection) else _message(data)


def read_mbox(source: Source, options: ReadOptions) -> Items:
    """The messages of a mailbox; the payload's ``thread`` is the id of the first message of their conversation."""
    lines: list[bytes] = []
    number = num_bytes = 0
    before = b"\n"
    try:
        while line := source.stream.readline(_MAX_MESSAGE_BYTES):
            if line.startswith(b"From ") and not before.strip():
                if number:
                    yield from _message_of_box(lines, num_bytes, number)
                number, num_bytes = number + 1, 0
                lines.clear()
            elif number:
                num_bytes += len(line)
                if num_bytes <= _MAX_MESSAGE_BYTES:
                    lines.append(line[1:] if line.lstrip(b">").startswith(b"From ") else line)
            before = line
    except DAMAGED as error:
        yield Rejection(number + 1, "damaged_input", f"the mailbox is cut off or damaged: {error}")
        return
    if number:
        yield from _message_of_box(lines, num_bytes, number)
    else:
        yield Rejection(1, "damaged_input", "expected a mailbox, whose messages begin with a line 'From '")


def _message_of_box(lines: list[bytes], num_bytes: int, number: int) -> Items:
    if num_bytes > _MAX_MESSAGE_BYTES:
        rule = f"message has {num_bytes} bytes, the limit is {_MAX_MESSAGE_BYTES}"
        yield Rejection(number, "row_too_long", rule)
    else:
        yield from _message(b"".join(lines), number)


def _message(data: bytes, number: int = 0) -> Items:
    """A message; ``number`` is its position in a mailbox."""
    try:
        message = email.message_from_bytes(data, policy=policy)
        headers = {name: _header(message, name) for name in ("subject", "from", "to", "date", "message-id")}
        body = message.get_body(("plain", "html"))
        text = "" if body is None else _content(body)
        attachments = [(part.get_filename() or f"message {index}.eml", part) for index, part in _attachments(message)]
    except (LookupError, ValueError, AttributeError, TypeError) as error:  # of the library, for malformed headers
        yield Rejection(number or 1, "damaged_message", f"message {number} cannot be read: {error}")
        return
    references = _header(message, "references") or _header(message, "in-reply-to") or headers["message-id"]
    yield _row(
        text,
        {**headers, "date": _date(headers["date"]), "thread": (references.split() or [""])[0]},
        number,
        [name for name, _ in attachments],
    )
    for name, part in attachments:
        yield Member(f"{number}/{name}" if number else name, partial(_open, part))


def _header(message: EmailMessage, name: str) -> str:
    return " ".join(str(message.get(name) or "").split())


def _attachments(message: Any) -> Iterator[tuple[int, Any]]:
    parts = message.iter_attachments() if message.is_multipart() else ()
    return (
        (index, part)
        for index, part in enumerate(parts, start=1)
        if part.get_filename() or part.get_content_type() == "message/rfc822"
    )


def _open(part: Any) -> BinaryIO:
    if part.get_content_type() == "message/rfc822":
        return io.BytesIO(part.get_content().as_bytes())
    return io.BytesIO(part.get_payload(decode=True) or b"")


def _content(part: Any) -> str:
    data = part.get_payload(decode=True) or b""
    assert isinstance(data, bytes)
    try:
        text = data.decode(part.get_content_charset("utf-8"), "replace")
    except LookupError:  # an unknown character set
        text = data.decode("utf-8", "replace")
    return _html_text(text) if part.get_content_subtype() == "html" else text


def _html_text(html: str) -> str:
    page = HtmlPage()
    page.parse(html)
    return page.main_text()


def _date(text: str) -> str:
    try:
        return parsedate_to_datetime(text).isoformat()
    except (ValueError, TypeError, OverflowError):
        return text


def _row(text: str, headers: dict[str, str], number: int, attachments: list[str]) -> Row:
    message_id = headers.pop("message-id").strip("<>")
    key = (message_id or str(number)) if number else ""
    headers["thread"] = headers["thread"].strip("<>")
    title = headers.pop("subject")
    new_text = _without_quotes(text.replace("\r\n", "\n").strip())
    return document(new_text or title, title, number or 1, key=key, **headers, attachments=attachments)


def _without_quotes(text: str) -> str:
    """The new text of a message; all of it if nothing else is left."""
    from mailparser_reply import EmailReplyParser

    if len(text) > _MAX_REPLY_CHARS or any(len(line) > _MAX_LINE_CHARS for line in text.split("\n")):
        return text
    reply = next(iter(EmailReplyParser(languages=_LANGUAGES).read(text).replies), None)
    return (reply.body.strip() if reply else "") or text


def read_msg(source: Source, options: ReadOptions) -> Items:
    """One message of Outlook."""
    from oxmsg import Message

    message: Any = Message.load(source.seekable(options.limits.unpacked_bytes))
    headers = {name.casefold(): " ".join(value.split()) for name, value in message.message_headers.items()}
    sent = message.sent_date.isoformat() if message.sent_date else _date(headers.get("date", ""))
    thread = headers.get("references") or headers.get("in-reply-to") or headers.get("message-id") or ""
    fields = {
        "subject": message.subject or "",
        "from": message.sender or headers.get("from", ""),
        "to": headers.get("to", ""),
        "date": sent,
        "message-id": headers.get("message-id", ""),
        "thread": (thread.split() or [""])[0],
    }
    attachments = [(part.file_name or "attachment", part.file_bytes or b"") for part in message.attachments]
    text = message.body or _html_text(message.html_body or "")
    yield _row(text, fields, 0, [name for name, _ in attachments])
    for name, data in attachments:
        yield Member(name, partial(io.BytesIO, data))
