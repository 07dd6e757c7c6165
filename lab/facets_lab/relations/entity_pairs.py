"""Finds pairs of entities and the pattern between them in a document of a raw corpus.

Besides the names of the gazetteer, the subject of a person's document is found by last name and by ``He``, ``She``,
``His`` or ``Her`` at the start of a sentence. Full dates are entities too, written as 1923-11-18.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice, pairwise
from operator import itemgetter

from facets.language.sentences import Sentence, sentences_of
from facets.language.tokenizer import Tokenizer
from facets.relations.entities import EntityFinder, EntitySpan, EntityType, Gazetteer
from facets.relations.patterns import ARG1, ARG2, ENTITY, MAX_TOKENS_BETWEEN, sentence_groups, sentence_patterns

_MONTHS = "January February March April May June July August September October November December".split()
MONTH = "|".join(_MONTHS)
# Words that begin sentences and are not names. Personal pronouns may be the subject of a document.
_SENTENCE_OPENERS = (
    "The|It|In|This|These|That|Those|However|There|A|An|They|Some|Many|Most|As|At|For|By|On|After|Before|When|While|If|"
    "Although|But|And|Both|Other|Others|One|Its|Their|Such|From|To|With|During|Since|Another|Several|All|Each|We"
)
_PARENTHESIS = re.compile(r" \([^()]*\)$")
_DATE = re.compile(rf"\b(?:(\d{{1,2}}) ({MONTH}),? (\d{{4}})|({MONTH}) (\d{{1,2}}), (\d{{4}}))\b")
_SUBJECT = r"(?:^|(?<=[.!?] ))(?:He|She|His|Her)\b"
_PERSONAL = re.compile(r"\b(?:[Hh]e|[Ss]he|[Hh]is|[Hh]er)\b")
_PERSON = re.compile(r"\b(?:was|is) an?\b")
_WORD = re.compile(r"[^\W\d_]+")
_PERSON_CHARS = 2000
_TYPE_SUFFIX = re.compile(r" (?:language|people|cuisine)$")  # added by knowledge bases, omitted in texts
_MIN_PRONOUNS = 3
_COUNTED_TEXTS, _MAX_LOWER_SHARE = 40_000, 0.2  # for telling names from words
# A name, a number or a date.
_NAME_SIGN = re.compile(
    rf"(?<!\w)(?!(?:{_SENTENCE_OPENERS})\b)[A-Z][\w'.-]*(?:\s+(?:(?:of|the|de|von|van)\s+)*[A-Z][\w'.-]*)*|\d+"
)
_MAX_SENTENCE_CHARS = 600
_LIST_TOKENS = frozenset([ARG1, ARG2, ENTITY, ",", "and", "or", "the", ";", "&"])

Mention = tuple[int, int, str]  # start, negative end, name: sorts by start, longest first


class DocumentMiner:
    """Counts cells of the matrix, document by document: pairs of the ``names`` and of what the ``finder`` finds."""

    def __init__(self, names: Sequence[str], finder: EntityFinder | None = None) -> None:
        self._gazetteer = Gazetteer(names)
        self._finder = finder
        self._tokenizer = Tokenizer()

    def mine(
        self,
        title: str,
        paragraphs: Iterable[str],
        cells: "Counter[tuple[str, str]]",
        types: "Counter[tuple[str, str]]",
    ) -> int:
        """Adds the cells of a document and returns the number of its sentences.

        ``cells`` counts ``(entity TAB entity, pattern)``; ``types`` counts ``(name, type)`` as the finder says.
        """
        paragraphs = list(paragraphs)
        subject = bare_name(title)
        aliases = _subject_aliases(subject, "\n".join(paragraphs)[:_PERSON_CHARS])
        sentences = [sentences_of(paragraph) for paragraph in paragraphs]
        recognized = self._recognize(paragraphs, sentences, types)
        for paragraph, more in zip(paragraphs, recognized, strict=True):
            mentions = self._mentions(paragraph, subject, aliases, more)
            if len(mentions) > 1:
                self._mine_paragraph(paragraph, mentions, cells)
        return sum(map(len, sentences))

    def _recognize(
        self, paragraphs: Sequence[str], sentences: Sequence[Sequence[Sentence]], types: "Counter[tuple[str, str]]"
    ) -> list[list[Mention]]:
        mentions: list[list[Mention]] = [[] for _ in paragraphs]
        if self._finder is None:
            return mentions
        # The finder takes most of the time, so it reads only sentences that may hold two names.
        candidates = [
            (row, sentence)
            for row, of_paragraph in enumerate(sentences)
            for sentence in of_paragraph
            if len(_NAME_SIGN.findall(sentence.text)) > 1 and len(sentence.text) < _MAX_SENTENCE_CHARS
        ]
        full_names: dict[str, str] = {}
        found = self._finder.find([sentence.text for _, sentence in candidates])
        for (row, sentence), spans in zip(candidates, found, strict=True):
            for span in spans:
                name = " ".join(sentence.text[span.start : span.end].strip(' ",').split())
                if span.type is EntityType.PERSON:
                    name = full_names.get(name, name)
                    if " " in name:
                        full_names.setdefault(name.rpartition(" ")[2], name)
                types[name, str(span.type)] += 1
                if name:
                    mentions[row].append((sentence.start + span.start, -(sentence.start + span.end), name))
        return mentions

    def _mine_paragraph(self, text: str, mentions: list[Mention], cells: "Counter[tuple[str, str]]") -> None:
        spans = [EntitySpan(start, -negative_end) for start, negative_end, _ in mentions]
        for sentence, members in sentence_groups(sentences_of(text), spans):
            pieces = [text[sentence.start : spans[members[0]].start]]
            for first, second in pairwise(members):
                piece = text[spans[first].end : spans[second].start]
                owner = text[spans[first].start : spans[first].end]
                pieces.append("'s" + piece if owner in ("His", "Her") else piece)
            pieces.append(text[spans[members[-1]].end : sentence.end])
            # Longer gaps exceed every limit and need not be tokenized.
            longest = 16 * (MAX_TOKENS_BETWEEN + 1)
            pieces[1:-1] = [piece if len(piece) <= longest else "x " * longest for piece in pieces[1:-1]]
            before, *gaps, after = self._tokenizer.words([pieces[0][-longest:], *pieces[1:-1], pieces[-1][:longest]])
            for pattern in sentence_patterns(gaps, before=before, after=after):
                head, tail = mentions[members[pattern.head]][2], mentions[members[pattern.tail]][2]
                if head != tail and not _is_list(pattern.tokens):
                    cells[f"{head}\t{tail}", " ".join(pattern.tokens)] += 1

    def _mentions(
        self, text: str, subject: str, aliases: "re.Pattern[str] | None", more: Iterable[Mention]
    ) -> list[Mention]:
        """Mentions without overlap, chosen from the left, longest first."""
        names = self._gazetteer.names
        mentions: list[Mention] = [(s, -e, names[n]) for s, e, n in self._gazetteer.find_names(text)]
        mentions += [(m.start(), -m.end(), _iso_date(m)) for m in _DATE.finditer(text)]
        if aliases is not None:
            mentions += [(m.start(), -m.end(), subject) for m in aliases.finditer(text)]
        chosen: list[Mention] = []
        for mention in sorted([*mentions, *more], key=itemgetter(0, 1)):
            if not chosen or mention[0] >= -chosen[-1][1]:
                chosen.append(mention)
        return chosen


def _is_list(tokens: Sequence[str]) -> bool:
    """Two items of a list (``$ARG1 , $ENT and $ARG2``), which have no relation to each other."""
    return ENTITY in tokens and all(token in _LIST_TOKENS for token in tokens)


def _subject_aliases(subject: str, opening: str) -> "re.Pattern[str] | None":
    """Pronouns and last name of the subject of a person's document; None for other documents."""
    words = subject.split()
    if len(words) < 2 or not all(word[0].isupper() for word in (words[0], words[-1])) or "," in subject:
        return None
    if not _PERSON.search(opening) or len(_PERSONAL.findall(opening)) < _MIN_PRONOUNS:
        return None
    return re.compile(rf"{_SUBJECT}|\b{re.escape(words[-1])}\b")


def _iso_date(match: "re.Match[str]") -> str:
    day, month, year, month_first, day_second, year_third = match.groups()
    number = _MONTHS.index(month or month_first) + 1
    return f"{int(year or year_third):04d}-{number:02d}-{int(day or day_second):02d}"


def bare_name(title: str) -> str:
    """A title or knowledge-base name as a text would write it.

    Example:
        >>> bare_name("Mercury (planet)"), bare_name("Democratic_Party_(United_States)"), bare_name('"Addiction"')
        ('Mercury', 'Democratic Party', 'Addiction')
    """
    return _PARENTHESIS.sub("", title.replace("_", " ").strip().strip('"')).strip()


def name_variants(name: str) -> list[str]:
    """Forms of a title or knowledge-base name in texts; the bare name first.

    Example:
        >>> name_variants("Burlington,_Vermont"), name_variants("English_language")
        (['Burlington, Vermont', 'Burlington'], ['English language', 'English'])
    """
    bare = bare_name(name)
    return list(dict.fromkeys([bare, bare.partition(",")[0], _TYPE_SUFFIX.sub("", bare)]))


def distinctive_names(names: Iterable[str], texts: Iterable[str]) -> list[str]:
    """Sorted names, without one-word names that are mostly written in lower case (``Will``, ``It``).

    A one-word name is kept if at most a fifth of its occurrences in the first 40,000 texts are in lower case. Names
    need a letter and three characters.
    """
    counts: Counter[str] = Counter()
    for text in islice(texts, _COUNTED_TEXTS):
        counts.update(_WORD.findall(text))
    kept = set()
    for name in names:
        if len(name) < 3 or not _WORD.search(name) or "\t" in name:
            continue
        as_is, lower = counts[name], counts[name.lower()]
        if name == name.lower() or (lower > _MAX_LOWER_SHARE * (as_is + lower) and " " not in name):
            continue
        kept.add(name)
    return sorted(kept)
