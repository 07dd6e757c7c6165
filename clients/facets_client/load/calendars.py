"""Calendars (iCalendar, RFC 5545) and contacts (vCard, RFC 2426 and 6350): one document per event, task or person."""

import datetime
import quopri
import re
from collections import Counter
from collections.abc import Iterator

from facets_client.load.pages import document, read_decoded
from facets_client.load.rows import ReadOptions, Rows
from facets_client.load.source import InputError, Source

_HEAD = re.compile(r'((?:[^":]|"[^"]*")*):(.*)', re.DOTALL)
_PARAMETER = re.compile(r';((?:[^";]|"[^"]*")*)')
_DATE = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)(?:T(\d\d):?(\d\d).*)?")
_DAY_OF_YEAR = re.compile(r"(?:--|1604-?)(\d\d)-?(\d\d).*")  # 1604: of Apple, for no year
_MAX_KEY_CHARS = 200
_DAYS = {day[:2].upper(): day for day in "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()}
_ORDINALS = {"": "", "1": "first ", "2": "second ", "3": "third ", "4": "fourth ", "5": "fifth ", "-1": "last "}
_UNITS = {"DAILY": "day", "WEEKLY": "week", "MONTHLY": "month", "YEARLY": "year"}
_LENGTHS = {"W": "week", "D": "day", "H": "hour", "M": "minute", "S": "second"}
# Properties that become lines, in this order.
_OF_EVENTS = {
    **{"DTSTART": "Starts", "DTEND": "Ends", "DURATION": "Lasts", "DUE": "Due", "RRULE": "Repeats", "EXDATE": "Except"},
    **{"LOCATION": "Where", "ORGANIZER": "Organizer", "ATTENDEE": "With", "STATUS": "Status", "DESCRIPTION": "About"},
}
_OF_PERSONS = {
    **{"NICKNAME": "Nickname", "ORG": "Company", "TITLE": "Job", "ROLE": "Role", "TEL": "Phone", "EMAIL": "E-mail"},
    **{"ADR": "Address", "BDAY": "Birthday", "ANNIVERSARY": "Anniversary", "URL": "Website", "NOTE": "Note"},
}
_KINDS = {"CELL": "mobile", "HOME": "home", "WORK": "work", "FAX": "fax", "PAGER": "pager"}  # of phones and addresses

Property = tuple[str, dict[str, str], str]  # name, parameters, and value with escapes


def read_calendar(source: Source, options: ReadOptions) -> Rows:
    """The events and tasks of a calendar."""
    return _documents(source, options, "calendar", ("VEVENT", "VTODO"), _OF_EVENTS)


def read_contacts(source: Source, options: ReadOptions) -> Rows:
    """The persons and companies of a list of contacts."""
    return _documents(source, options, "list of contacts", ("VCARD",), _OF_PERSONS)


def _documents(
    source: Source, options: ReadOptions, kind: str, wanted: tuple[str, ...], labels: dict[str, str]
) -> Rows:
    keys: Counter[str] = Counter()
    properties: list[Property] = []
    opened: list[str] = []
    for name, parameters, value in _properties(read_decoded(source, options, f"a {kind}")):
        component = opened[-1] if opened else ""
        if name == "BEGIN":
            opened.append(value.strip().upper())
            properties = [] if opened[-1] in wanted else properties
        elif name != "END":
            if component in wanted:
                properties.append((name, parameters, value))
        elif opened and opened.pop() in wanted:
            first = {name: value for name, _, value in reversed(properties)}
            full_name = " ".join(_parts(first.get("N", ""))[1::-1])
            names = (first.get("SUMMARY"), first.get("FN"), full_name, first.get("ORG"), first.get("EMAIL"))
            title = " ".join(_plain(next(filter(None, names), "")).split())
            lines = [_lines(properties, name, label) for name, label in labels.items()]
            key = "/".join(filter(None, (first.get("UID") or title, first.get("RECURRENCE-ID"))))[:_MAX_KEY_CHARS]
            keys[key] += 1
            key += f" {keys[key]}" if keys[key] > 1 else ""
            text = "\n".join(filter(None, lines))
            yield document(f"# {title}\n\n{text}" if title else text, title, keys.total(), key=key)
    if opened or not keys:
        raise InputError(f"{source.name}: {'ends too early' if opened else 'has no entries'}, expected a {kind}")


def _properties(text: str) -> Iterator[Property]:
    lines = iter(re.sub(r"\r?\n[ \t]", "", text).split("\n"))
    for line in lines:
        if match := _HEAD.fullmatch(line.rstrip("\r")):
            parameters: dict[str, str] = {}
            for parameter in _PARAMETER.findall(match[1]):
                name, _, value = parameter.rpartition("=")
                name = name.upper() or ("ENCODING" if value.upper() == "QUOTED-PRINTABLE" else "TYPE")  # of vCard 2.1
                parameters[name] = f"{parameters.get(name, '')},{value.replace(chr(34), '')}".lstrip(",")
            value = match[2]
            if parameters.get("ENCODING", "").upper() == "QUOTED-PRINTABLE":
                while value.endswith("="):
                    value = value[:-1] + next(lines, "").rstrip("\r")
                data = quopri.decodestring(value.encode("utf-8", "surrogateescape"))
                is_latin = parameters.get("CHARSET", "").upper() in ("ISO-8859-1", "ISO-8859-15", "WINDOWS-1252")
                value = data.decode("cp1252" if is_latin else "utf-8", "replace")
            yield match[1].partition(";")[0].rpartition(".")[2].upper(), parameters, value


def _plain(value: str) -> str:
    return re.sub(r"\\(.)", lambda match: "\n" if match[1] in "nN" else match[1], value).strip()


def _parts(value: str) -> list[str]:
    """The parts of a name or an address."""
    return [_plain(part) for part in re.split(r"(?<!\\);", value)]


def _lines(properties: list[Property], wanted: str, label: str) -> str:
    """A line for the values of one property: those of a phone each with its kind, others together."""
    lines: dict[str, list[str]] = {}
    start = next((value for name, _, value in properties if name == "DTSTART"), "")
    for name, parameters, value in properties:
        if name == wanted and (text := _in_words(name, parameters, value, start)):
            types = parameters.get("TYPE", "").upper().split(",")
            kinds = ", ".join(_KINDS[kind] for kind in types if kind in _KINDS)
            lines.setdefault(f"{label} ({kinds})" if kinds else label, []).append(text)
    return "\n".join(f"{label}: {', '.join(values)}" for label, values in lines.items())


def _in_words(name: str, parameters: dict[str, str], value: str, start: str) -> str:
    if name in ("ORGANIZER", "ATTENDEE"):
        address = re.sub("^mailto:", "", value, flags=re.IGNORECASE)
        return f"{parameters['CN']} ({address})" if parameters.get("CN", address) != address else address
    if name in ("ADR", "ORG"):
        return ", ".join(filter(None, _parts(value)))
    if name == "RRULE":
        return _repetition(dict(part.partition("=")[::2] for part in value.upper().split(";")))
    if name == "DURATION":
        lengths = [(int(number), _LENGTHS[unit]) for number, unit in re.findall(r"(\d{1,6})([WDHMS])", value)]
        return " ".join(f"{number} {unit}{'s' * (number != 1)}" for number, unit in lengths if number)
    if name in ("BDAY", "ANNIVERSARY"):
        day = _date(_DAY_OF_YEAR.sub(r"1604\1\2", value).partition("T")[0])
        return day.partition("day ")[2].removesuffix(" 1604") or day
    if name in ("DTSTART", "DTEND", "DUE", "EXDATE"):
        is_day = name == "DTEND" and len(value) == 8  # the first day after the event
        days = [_date(day, parameters.get("TZID", ""), days_before=int(is_day)) for day in value.split(",")]
        return "" if is_day and days == [_date(start)] else ", ".join(days)
    text = _plain(value)
    return text.removeprefix("tel:") if name == "TEL" else text.lower() if name == "STATUS" else text


def _date(value: str, zone: str = "", *, days_before: int = 0) -> str:
    """A date with its weekday, and a time with the zone that the calendar names; other values as they are."""
    match = _DATE.fullmatch(value)
    try:
        day = datetime.date(*map(int, match.groups()[:3])) - datetime.timedelta(days_before) if match else None
    except (ValueError, OverflowError):
        day = None
    if match is None or day is None:
        return _plain(value)
    zone = "UTC" if value.endswith("Z") else zone
    time = f", {match[4]}:{match[5]}" + (f" ({zone})" if zone else "") if match[4] else ""
    return f"{day:%A} {day.day} {day:%B} {day.year}{time}"


def _repetition(rule: dict[str, str]) -> str:
    frequency, interval = rule.get("FREQ", ""), rule.get("INTERVAL", "1")
    unit = _UNITS.get(frequency, frequency.lower())
    words = [frequency.lower() if interval == "1" else f"every {interval} {unit}s"]
    if "BYDAY" in rule:
        days = [(day[:-2].lstrip("+"), day[-2:]) for day in rule["BYDAY"].split(",")]
        named = [_ORDINALS.get(place, f"{place}. ") + _DAYS.get(day, day) for place, day in days]
        words.append("on " + " and ".join(named))
    if "BYMONTHDAY" in rule:
        words.append(f"on day {rule['BYMONTHDAY'].replace('-1', 'last')}")
    if "BYMONTH" in rule:
        months = [int(month) for month in rule["BYMONTH"].split(",") if month in map(str, range(1, 13))]
        words.append("in " + " and ".join(f"{datetime.date(2000, month, 1):%B}" for month in months))
    words += [f"{name}={value}" for name, value in rule.items() if name in ("BYSETPOS", "BYWEEKNO", "BYYEARDAY")]
    if "UNTIL" in rule:
        words.append(f"until {_date(rule['UNTIL'][:8])}")
    if "COUNT" in rule:
        words.append(f"{rule['COUNT']} times")
    return " ".join(words)
