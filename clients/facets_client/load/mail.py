"""Mail: one document per message, without quoted text and signatures; attachments are files of their own."""

import email
import io
from email.message import EmailMessage
from email.policy import default as policy
from email.utils import format_datetime, parsedate_to_datetime
from functools import partial
from typing import Any, BinaryIO

from facets_client.load.pages import MAX_FILE_BYTES, HtmlPage, document, read_whole
from facets_client.load.rows import Items, Member, ReadOptions, Rejection
from facets_client.load.source import InputError, Source

_MAX_REPLY_CHARS = 2**16  # longer texts are taken whole: the search for quoted text would take too long
_MAX_LINE_CHARS = 1_000
_HEADERS = ("subject", "from", "to", "date", "message-id", "references", "in-reply-to")
_LANGUAGES = ["en", "de", "fr", "es", "it", "nl", "pl", "sv", "da", "cs", "ja", "ko", "zh"]


def read_eml(source: Source, options: ReadOptions) -> Items:
    """One message."""
    return _message(read_whole(source.stream, source.name))


def read_mbox(source: Source, options: ReadOptions) -> Items:
    """The messages of a mailbox; the payload's ``thread`` is the id of the first message of their conversation."""
    lines: list[bytes] = []
    number = num_bytes = 0
    before = b"\n"
    while line := source.stream.readline(MAX_FILE_BYTES):
        if line.startswith(b"From ") and not before.strip():
            if number:
                yield from _message_of_box(lines, num_bytes, number)
            number, num_bytes = number + 1, 0
            lines.clear()
        elif not number:
            raise InputError(f"{source.name}: expected a mailbox, whose messages begin with a line 'From '")
        else:
            num_bytes += len(line)
            if num_bytes <= MAX_FILE_BYTES:
                lines.append(line[1:] if line.lstrip(b">").startswith(b"From ") else line)
        before = line
    yield from _message_of_box(lines, num_bytes, number)


def _message_of_box(lines: list[bytes], num_bytes: int, number: int) -> Items:
    if num_bytes > MAX_FILE_BYTES:
        rule = f"message has {num_bytes} bytes, the limit is {MAX_FILE_BYTES}"
        yield Rejection(number, "row_too_long", rule)
    else:
        yield from _message(b"".join(lines), number)


def _message(data: bytes, number: int = 0) -> Items:
    """A message; ``number`` is its position in a mailbox."""
    try:
        message = email.message_from_bytes(data, policy=policy)
        headers = {name: " ".join(str(message.get(name) or "").split()) for name in _HEADERS}
        body = message.get_body(("plain", "html"))
        text = "" if body is None else _content(body)
        parts = message.iter_attachments() if message.is_multipart() else ()
        attachments = [
            (part.get_filename() or f"message {index}.eml", part)
            for index, part in enumerate(parts, start=1)
            if part.get_filename() or part.get_content_type() == "message/rfc822"
        ]
    except (LookupError, ValueError, AttributeError, TypeError) as error:  # of the library, for malformed headers
        yield Rejection(number or 1, "damaged_message", f"message {number} cannot be read: {error}")
        return
    title, message_id = headers["subject"], headers["message-id"].strip("<>")
    thread = headers["references"] or headers["in-reply-to"] or message_id
    yield document(
        _without_quotes(text.replace("\r\n", "\n").strip()) or title,
        title,
        number or 1,
        key=(message_id or str(number)) if number else "",
        **{"from": headers["from"]},
        to=headers["to"],
        date=_date(headers["date"]),
        thread=(thread.split() or [""])[0].strip("<>"),
        attachments=[name for name, _ in attachments],
    )
    for name, part in attachments:
        yield Member(f"{number}/{name}" if number else name, partial(_open, part))


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
    return HtmlPage(text).main_text() if part.get_content_subtype() == "html" else text


def _date(text: str) -> str:
    try:
        return parsedate_to_datetime(text).isoformat()
    except (ValueError, TypeError, OverflowError):
        return text


def _without_quotes(text: str) -> str:
    """The new text of a message; all of it if nothing else is left."""
    from mailparser_reply import EmailReplyParser

    if len(text) > _MAX_REPLY_CHARS or any(len(line) > _MAX_LINE_CHARS for line in text.split("\n")):
        return text
    reply = next(iter(EmailReplyParser(languages=_LANGUAGES).read(text).replies), None)
    lines = reply.body.rstrip().split("\n") if reply else []
    while lines and (lines[-1].startswith(">") or not lines[-1].strip()):  # nothing replies to this quotation
        lines.pop()
    return "\n".join(lines).strip() or text


def read_msg(source: Source, options: ReadOptions) -> Items:
    """One message of Outlook."""
    from oxmsg import Message

    given: Any = Message.load(source.seekable(options.unpacked_bytes))
    headers = {name.casefold(): value for name, value in given.message_headers.items()}
    headers |= {"subject": given.subject, "from": given.sender or ""}
    if given.sent_date:
        headers["date"] = format_datetime(given.sent_date)
    message = EmailMessage()
    for name in _HEADERS:
        if value := " ".join(headers.get(name, "").split()):
            message[name] = value
    message.set_content(given.body or given.html_body or "", subtype="plain" if given.body else "html")
    for part in given.attachments:
        name = part.file_name or "attachment"
        message.add_attachment(part.file_bytes or b"", "application", "octet-stream", filename=name)
    return _message(bytes(message))
