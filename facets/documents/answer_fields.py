"""Finds which part of a record (a ticket, an FAQ entry, a form) states the problem and which part solves it.

A record labels its parts, in the text ("Problem: ... Resolution: ...", "Q: ... A: ...", "## Fix") or by payload fields.
"""

import re
from typing import Literal, NamedTuple

from facets.documents.fields import SearchedText

Role = Literal["problem", "solution", ""]

# Words of labels in English, German, French and Spanish.
_PROBLEM = frozenset(
    "subject title question problem issue symptom symptoms complaint fault error defect failure description"
    " frage fehler st\u00f6rung beschwerde beschreibung betreff probl\u00e8me panne objet"
    " pregunta problema s\u00edntoma incidencia asunto".split()
)
_SOLUTION = frozenset(
    "answer resolution solution fix workaround remedy response cause"
    " antwort l\u00f6sung abhilfe ursache r\u00e9ponse soluci\u00f3n respuesta causa".split()
)
_MARKS = r"[ \t>|#*_-]*+"
_WORDS = r"[^\W\d_][\w'-]{0,30}(?: [\w'-]{1,30}){0,2}"
# "Resolution: text", "**Fix**", "## Problem", "Q1. text", "| Answer | text |"; a label alone on its line, too.
_LABEL = re.compile(
    rf"^(?P<marks>{_MARKS})(?:(?P<letter>[QA])[ ]?\d{{0,3}}[.:)]"
    rf"|(?P<words>{_WORDS})[ ]*+(?P<end>[*_]*+(?:[:\uff1a|\t]|[ \t]*+$)))[ \t*_]*+(?=\s|$|(?<=[\s*_]))",
    re.MULTILINE,
)
_BLANK = " \t\r\n|*_"
_FEWEST_WORDS = 4  # of prose: fewer are a fact, such as a name or a date
_MAX_PROBLEM_CHARS = 1_000  # a longer text without labels holds more than a problem
_MAX_RECORD_CHARS = 100_000  # characters of a text that are searched for labels


class Section(NamedTuple):
    """A labelled part of a record."""

    role: Role  # empty: another label, such as "Status:"
    label: str  # in lower case; empty for text before the first label
    label_start: int  # offset of the label
    start: int  # offset of the content, after the label
    end: int  # offset after the content
    field: str = ""  # payload field that holds it; empty: the text


def role_of(label: str) -> Role:
    """What a label or the name of a field announces.

    Example:
        >>> role_of("Resolution notes"), role_of("ticket.problem"), role_of("Status")
        ('solution', 'problem', '')
    """
    words = set(re.findall(r"[^\W\d_]+", label.lower()))
    return "solution" if words & _SOLUTION else "problem" if words & _PROBLEM else ""


def sections_of(text: str) -> list[Section]:
    r"""The labelled parts of a text, in order; empty if no label announces a solution.

    Prose before the first solution is a problem, whatever its label.

    Example:
        >>> text = "Problem: It is dark.\nResolution: Turn it on.\nStatus: closed"
        >>> [(section.role, text[section.start : section.end]) for section in sections_of(text)]
        [('problem', 'It is dark.'), ('solution', 'Turn it on.'), ('', 'closed')]
    """
    found = [Section("", "", 0, 0, 0)]
    for match in _LABEL.finditer(text, 0, min(len(text), _MAX_RECORD_CHARS)):
        label = match["words"] or {"Q": "question", "A": "answer"}[match["letter"]]
        role = role_of(label)
        if role or any(mark in match[0] for mark in (":", "\uff1a", "#", "**")):
            found[-1] = found[-1]._replace(end=match.start())
            found.append(Section(role, label.lower(), match.start(), match.end(), len(text)))
    first_solution = next((number for number, section in enumerate(found) if section.role == "solution"), None)
    if first_solution is None:
        return []
    sections = []
    for number, section in enumerate(found):
        content = text[section.start : section.end]
        start = section.start + len(content) - len(content.lstrip(_BLANK))
        if content := content.strip(_BLANK):
            is_problem = number < first_solution and len(content.split()) >= _FEWEST_WORDS
            role = section.role or ("problem" if is_problem else "")
            sections.append(section._replace(role=role, start=start, end=start + len(content)))
    return sections


def solutions_of(searched: SearchedText, start: int, end: int, field: str = "") -> list[Section]:
    """The sections that solve the problem which ``[start, end)`` of the text, or of a field, states; usually one.

    Empty if the range does not state a problem, or nothing solves it.
    """
    fields = [one for one in searched.fields if role_of(one.name) == "solution"]
    in_fields = [Section("solution", one.name, 0, 0, len(one.text), one.name) for one in fields]
    if field:
        return in_fields if role_of(field) == "problem" else []
    sections = sections_of(searched.text)
    if not sections:  # without labels, a short text is the problem if a field holds the solution
        return in_fields if len(searched.text) <= _MAX_PROBLEM_CHARS else []
    place = next((i for i, one in enumerate(sections) if one.label_start < end and start < one.end), -1)
    if place < 0 or sections[place].role != "problem":
        return []
    solutions: list[Section] = []
    for section in sections[place + 1 :]:
        if section.role == "problem" and (solutions or section.label == sections[place].label):
            break
        solutions += [section] if section.role == "solution" else []
    return solutions
