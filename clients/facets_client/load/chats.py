"""Plain text, chats and subtitles: one document per conversation, whose lines are ``Name: text``."""

import datetime
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from typing import Any

from facets_client.load.pages import HtmlPage, document, read_decoded
from facets_client.load.rows import ReadOptions, Rejection, Row, Rows
from facets_client.load.source import Source

_GAP_S = 4 * 3600.0  # a longer silence ends a conversation
_MAX_CHARS = 20_000  # of a conversation


@dataclass(frozen=True, slots=True)
class _Message:
    time: float  # s since 1970
    name: str
    text: str
    thread: str = ""  # of a reply: the id of the first message; empty: outside a thread
    channel: str = ""


def _conversations(messages: Iterable[_Message]) -> Rows:
    """The messages of each thread, and those of a channel between two long silences."""
    conversations: list[list[_Message]] = []
    latest: dict[tuple[str, str], list[_Message]] = {}
    for message in sorted(messages, key=lambda message: message.time):
        if not message.text.strip():
            continue
        key = (message.channel, message.thread)
        before = latest.get(key)
        if (
            not before
            or (not message.thread and message.time - before[-1].time > _GAP_S)
            or sum(len(one.text) for one in before) > _MAX_CHARS
        ):
            before = latest[key] = []
            conversations.append(before)
        before.append(message)
    for number, conversation in enumerate(conversations, start=1):
        first = conversation[0]
        date = datetime.datetime.fromtimestamp(first.time, datetime.UTC).isoformat(timespec="seconds")
        yield document(
            "\n".join(f"{message.name}: {message.text}".removeprefix(": ") for message in conversation),
            ", ".join(filter(None, (first.channel, date[:10]))),
            number,
            key="/".join(filter(None, (first.channel, date, first.thread))),
            channel=first.channel,
            participants=list(dict.fromkeys(message.name for message in conversation if message.name)),
            date=date,
        )


# Slack

_SLACK_MARK = re.compile(r"<([@#!]?)([^|>]*)(?:\|([^>]*))?>")
_SLACK_SYSTEM = ("_join", "_leave", "_topic", "_purpose", "_name", "_archive")  # ends of subtypes


def is_slack_export(names: Iterable[str]) -> bool:
    """Whether these are the files of a Slack export."""
    return {"users.json", "channels.json"}.issubset(names)


def slack_conversations(names: Sequence[str], read: Callable[[str], bytes]) -> Rows:
    """The conversations of an export with a folder for each channel and a file for each day."""
    users = {str(user.get("id")): _slack_name(user) for user in json.loads(read("users.json"))}
    files = [name for name in names if name.endswith(".json") and "/" in name]
    for channel, days in itertools.groupby(sorted(files), key=lambda name: name.rpartition("/")[0]):
        messages: list[_Message] = []
        for day in days:
            try:
                messages += _slack_messages(json.loads(read(day)), channel, users)
            except (ValueError, TypeError, AttributeError, RecursionError) as error:
                yield Rejection(1, "damaged_input", f"{day}: expected messages of Slack: {error}")
        yield from _conversations(messages)


def _slack_name(user: Mapping[str, Any]) -> str:
    profile = user.get("profile") or {}
    return str(profile.get("real_name") or profile.get("display_name") or user.get("real_name") or user.get("name"))


def _slack_messages(items: Iterable[Mapping[str, Any]], channel: str, users: Mapping[str, str]) -> Iterator[_Message]:
    def plain(match: re.Match[str]) -> str:
        kind, value, label = match.groups()
        return (kind if kind in "@#" else "") + (label or (users.get(value, value) if kind == "@" else value))

    for item in items:
        if not str(item.get("subtype") or "").endswith(_SLACK_SYSTEM):
            user = str(item.get("user") or "")
            name = users.get(user) or _slack_name(
                {"name": item.get("username") or user, **item.get("user_profile", {})}
            )
            text = unescape(_SLACK_MARK.sub(plain, str(item.get("text") or "")))
            yield _Message(float(item["ts"]), name, text, str(item.get("thread_ts") or ""), channel)


# Messages in a file of JSON


def chat_rows(rows: Rows) -> Rows:
    """Conversations if the rows are messages of Slack or Teams, else the rows."""
    first = next(rows, None)
    if first is None:
        return iter(())
    rows = itertools.chain([first], rows)
    fields = first.fields if isinstance(first, Row) else {}
    if fields.get("type") == "message" and {"ts", "text"} <= fields.keys():
        return _conversations(_slack_messages((row.fields for row in rows if isinstance(row, Row)), "", {}))
    if {"createdDateTime", "body", "messageType"} <= fields.keys():
        return _conversations(_teams_messages([row.fields for row in rows if isinstance(row, Row)]))
    return rows


def _teams_messages(items: Sequence[Mapping[str, Any]]) -> Iterator[_Message]:
    answered = {item.get("replyToId") for item in items}
    for item in items:
        if item["messageType"] != "message":
            continue
        sender = item.get("from") or {}
        name = next((str(who["displayName"]) for who in sender.values() if who and who.get("displayName")), "")
        text = str((item.get("body") or {}).get("content") or "")
        if item["body"].get("contentType") == "html":
            text = HtmlPage(text).blocks.text()
        channel = str((item.get("channelIdentity") or {}).get("channelId") or item.get("chatId") or "")
        thread = item.get("replyToId") or (item.get("id") if item.get("id") in answered else "")
        time = datetime.datetime.fromisoformat(item["createdDateTime"]).timestamp()
        yield _Message(time, name, text, str(thread), channel)


# WhatsApp

_WHATSAPP = re.compile(
    r"\u200e?\[?(\d{1,4})[./-](\d{1,2})[./-](\d{1,4}),? (\d{1,2})[:.](\d\d)(?:[:.](\d\d))?"
    r"[\s\u202f]?([AaPp]\.?[Mm]\.?)?(?:\]| -) (?:([^:\n]{1,80}): )?(.*)"
)
_LEFT_OUT = re.compile(r"\u200e.*|<[^>]*omitted>|<attached: [^>]*>|.* \(file attached\)", re.IGNORECASE)


def read_text(source: Source, options: ReadOptions) -> Rows:
    """A whole file as one text."""
    text = read_decoded(source, options, "text")
    yield from _whatsapp_conversations(text) or [document(text)]


def _whatsapp_conversations(text: str) -> list[Row | Rejection]:
    """The conversations of an exported chat; empty if the text is none."""
    found: list[tuple[re.Match[str], list[str]]] = []
    for line in text.split("\n"):
        if match := _WHATSAPP.fullmatch(line):
            found.append((match, [match[9]]))
        elif not found:
            return []
        else:
            found[-1][1].append(line)
    is_month_first = any(int(match[2]) > 12 for match, _ in found) or (
        "/" in found[0][0][0][:4] and found[0][0][7] and not any(int(match[1]) > 12 for match, _ in found)
    )
    return list(_conversations(_whatsapp_messages(found, bool(is_month_first)))) if len(found) > 1 else []


def _whatsapp_messages(found: Iterable[tuple[re.Match[str], list[str]]], is_month_first: bool) -> Iterator[_Message]:
    for match, lines in found:
        first, second, third, hour, minute, second_of_minute = (int(part or 0) for part in match.groups()[:6])
        year, month, day = (first, second, third) if first > 31 else (third, second, first)
        if is_month_first and first <= 31:
            month, day = day, month
        if match[7]:
            hour = hour % 12 + 12 * match[7].lower().startswith("p")
        try:
            time = datetime.datetime(
                year + 2000 * (year < 100), month, day, hour, minute, second_of_minute, tzinfo=datetime.UTC
            ).timestamp()
        except ValueError:
            continue
        text = "\n".join(lines).strip()
        if match[8] and not _LEFT_OUT.fullmatch(text):  # a line without a name is of the system
            yield _Message(time, match[8].strip("\u200e\u202a\u202c~ "), text.lstrip("\u200e"))


# Subtitles

_TIMES = re.compile(r"(?:\d+:)?\d+:\d\d[.,]\d{3} --> .*")
_VOICE = re.compile(r"<v[. ]+([^>]+)>")
_TAG = re.compile(r"</?[^>]*>|\{\\[^}]*\}")


def read_subtitles(source: Source, options: ReadOptions) -> Rows:
    """The spoken text of SRT or WebVTT; a line begins with the speaker's name where it is known."""
    lines: list[str] = []
    speaker = ""
    for block in re.split(r"\n[ \t]*\n", read_decoded(source, options, "subtitles")):
        rows = block.strip().split("\n")
        start = next((index + 1 for index, row in enumerate(rows) if _TIMES.fullmatch(row.strip())), None)
        for row in rows[start:] if start is not None else ():
            voice = _VOICE.search(row)
            spoken = unescape(_TAG.sub("", row)).strip()
            if voice and voice[1] != speaker:
                speaker = voice[1]
                lines.append(f"{speaker}: {spoken}")
            elif lines and lines[-1] and lines[-1][-1] not in ".?!:\u2026\"'" and not spoken.startswith("-"):
                lines[-1] += f" {spoken}"
            elif spoken and not (lines and lines[-1] == spoken):
                lines.append(spoken)
    yield document("\n".join(lines))
