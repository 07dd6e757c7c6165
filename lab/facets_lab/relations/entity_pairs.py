"""Finds pairs of entities and the pattern between them in one document of a raw corpus.

Beside the names of the gazetteer a document's own subject is found where an encyclopedia does not repeat its
title: by a person's last name, and by ``He``, ``She``, ``His`` or ``Her`` at the start of a sentence. Full dates
are entities too, written as 1923-11-18.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from operator import itemgetter

from facets.language.sentences import Sentence
from facets.language.tokenizer import Tokenizer
from facets.relations.entities import EntityFinder, EntitySpan, EntityType, Gazetteer
from facets.relations.patterns import ARG1, ARG2, ENTITY, PairLimits, sentence_groups, sentence_patterns

_MONTHS = "January February March April May June July August September October November December".split()
_MONTH = "|".join(_MONTHS)
# Words that begin sentences and are no names. Pronouns are none of them: they may stand for a document's subject.
SENTENCE_OPENERS = (
    "The|It|In|This|These|That|Those|However|There|A|An|They|Some|Many|Most|As|At|For|By|On|After|Before|When|While|If|"
    "Although|But|And|Both|Other|Others|One|Its|Their|Such|From|To|With|During|Since|Another|Several|All|Each|We"
)
_OTHER_OPENERS = (
    "He|She|His|Her|I|You|Who|What|Where|Why|How|Not|No|Nor|Or|So|Yet|Then|Thus|Hence|Here|Two|Three|Four|Five|First|"
    "Second|Third|Later|Early|Today|Although|Though|Because|Until|Under|Over|About|Among|Through|Despite|According|"
    "Following|Born|Known|Named|Also|Even|Only|Our|Your|My|Of|Is|Was|Are|Were|Once|Now|More|Much|Few|Like|Unlike|Upon|"
    "Between|Within|Without|Every|Any|Perhaps|Finally|Eventually|Originally|Initially|Recently|Currently|Instead"
)
_CAPITALIZED = r"(?:(?:[A-Z]\.)+|[A-Z][\w'\u2019&-]*|\u00c9[\w'-]+)"
_LINKS = r"(?:(?:of|the|de|la|von|van|der|den|del|di|du|bin|ibn|al|for)\s+)*"
_NAME = re.compile(
    rf"\"(?P<work>[A-Z][^\"]{{1,60}})[\",]?\""
    rf"|(?P<date>\b(?:\d{{1,2}} (?:{_MONTH})|(?:{_MONTH})(?: \d{{1,2}},)?) \d{{4}}\b|\b1[0-9]\d\d\b|\b20[0-4]\d\b)"
    r"|(?P<number>\b\d[\d.,]*\b)"
    rf"|(?<![\w'])(?!(?:{SENTENCE_OPENERS}|{_OTHER_OPENERS}|{_MONTH})\b){_CAPITALIZED}(?:\s+{_LINKS}{_CAPITALIZED})*"
)
_KINDS = {"work": EntityType.WORK, "date": EntityType.DATE, "number": EntityType.NUMBER}
_LOOSE_END = re.compile(r"(?:['\u2019]s|['\u2019&-])$")


class CapitalizedNames:
    """Finds runs of capitalized words, titles in double quotes, dates and numbers.

    A title's quotes belong to its span. Kinds are told for titles, dates and numbers alone.

    Example:
        >>> text = 'In 1813 Jane Austen published "Pride and Prejudice" at the University of Oxford.'
        >>> [text[span.start : span.end] for span in CapitalizedNames().find([text])[0]]
        ['1813', 'Jane Austen', '"Pride and Prejudice"', 'University of Oxford']
    """

    def find(self, texts: Sequence[str]) -> list[list[EntitySpan]]:
        """See ``EntityFinder``."""
        return [list(self._spans(text)) for text in texts]

    def _spans(self, text: str) -> Iterator[EntitySpan]:
        for match in _NAME.finditer(text):
            name = match.group()
            kind = _KINDS.get(match.lastgroup or "", EntityType.UNKNOWN)
            loose = _LOOSE_END.search(name)
            yield EntitySpan(match.start(), match.end() - (len(loose.group()) if loose else 0), kind)


_PARENTHESIS = re.compile(r" \([^()]*\)$")
_DATE = re.compile(rf"\b(?:(\d{{1,2}}) ({_MONTH}),? (\d{{4}})|({_MONTH}) (\d{{1,2}}), (\d{{4}}))\b")
_SUBJECT = re.compile(r"(?:^|(?<=[.!?] ))(?:He|She|His|Her)\b")
_PERSONAL = re.compile(r"\b(?:[Hh]e|[Ss]he|[Hh]is|[Hh]er)\b")
_PERSON = re.compile(r"\b(?:was|is) an?\b")
_WORD = re.compile(r"[^\W\d_]+")
_PERSON_CHARS = 2000
# What a knowledge base adds to a name and a text leaves out.
_KIND_SUFFIX = re.compile(r" (?:language|people|cuisine)$")
_MIN_PRONOUNS = 3
_COUNTED_TEXTS, _MAX_LOWER_SHARE = 40_000, 0.2  # by which names are told from words
# A name, a number or a date.
_NAME_SIGN = re.compile(
    rf"(?<!\w)(?!(?:{SENTENCE_OPENERS})\b)[A-Z][\w'.-]*(?:\s+(?:(?:of|the|de|von|van)\s+)*[A-Z][\w'.-]*)*|\d+"
)
_MAX_SENTENCE_CHARS = 600
_LIST_TOKENS = frozenset([ARG1, ARG2, ENTITY, ",", "and", "or", "the", ";", "&"])


class DocumentMiner:
    """Counts cells of the matrix, document by document; one a process.

    Args:
        names: Entity names, already without those that are common words.
        limits: What is a pattern.
        finder: Finds more entities in sentences that may hold two; None: the names alone.
    """

    def __init__(self, names: Sequence[str], limits: PairLimits, finder: EntityFinder | None = None) -> None:
        self._gazetteer = Gazetteer(names)
        self._limits = limits
        self._finder = finder
        self._tokenizer = Tokenizer()

    def mine(self, title: str, paragraphs: Iterable[str], cells: "Counter[str]", types: "Counter[str]") -> int:
        """Adds the cells of a document.

        Args:
            title: The document's title, its subject; may be empty.
            paragraphs: Its text.
            cells: Counts under ``entity TAB entity TAB pattern``; changed in place.
            types: How often the finder gave a name a kind or none, under ``name TAB kind``; changed in place.

        Returns:
            How many sentences it has.
        """
        paragraphs = list(paragraphs)
        subject = bare_name(title)
        aliases = _subject_aliases(subject, "\n".join(paragraphs)[:_PERSON_CHARS])
        sentences = [self._tokenizer.sentences(paragraph) for paragraph in paragraphs]
        recognized = self._recognize(paragraphs, sentences, types)
        for paragraph, more in zip(paragraphs, recognized, strict=True):
            found = self._mentions(paragraph, subject, aliases, more)
            if len(found) > 1:
                self._mine_paragraph(paragraph, found, cells)
        return sum(map(len, sentences))

    def _recognize(
        self, paragraphs: Sequence[str], sentences: Sequence[Sequence[Sentence]], types: "Counter[str]"
    ) -> list[list[tuple[int, int, str]]]:
        """Start, negative end and name of what the finder finds in each paragraph."""
        found: list[list[tuple[int, int, str]]] = [[] for _ in paragraphs]
        if self._finder is None:
            return found
        # Most of the time is the finder's: it sees no sentence without two capitals or figures behind its first word.
        asked = [
            (place, sentence)
            for place, own in enumerate(sentences)
            for sentence in own
            if len(_NAME_SIGN.findall(sentence.text)) > 1 and len(sentence.text) < _MAX_SENTENCE_CHARS
        ]
        full_names: dict[str, str] = {}
        spans = self._finder.find([sentence.text for _, sentence in asked])
        for (place, sentence), own_spans in zip(asked, spans, strict=True):
            for span in own_spans:
                name = " ".join(sentence.text[span.start : span.end].strip(' ",').split())
                if span.type is EntityType.PERSON:
                    name = full_names.get(name, name)
                    if " " in name:
                        full_names.setdefault(name.rpartition(" ")[2], name)
                types[f"{name}\t{span.type}"] += 1  # unknown ones too, for the share of the others
                if name:
                    found[place].append((sentence.start + span.start, -(sentence.start + span.end), name))
        return found

    def _mine_paragraph(self, text: str, found: list[tuple[int, int, str]], cells: "Counter[str]") -> None:
        spans = [EntitySpan(start, end) for start, end, _ in found]
        for sentence, members in sentence_groups(text, spans, self._tokenizer):
            pieces = [text[sentence.start : spans[members[0]].start]]
            for first, second in pairwise(members):
                piece = text[spans[first].end : spans[second].start]
                owner = text[spans[first].start : spans[first].end]
                pieces.append("'s" + piece if owner in ("His", "Her") else piece)
            pieces.append(text[spans[members[-1]].end : sentence.end])
            # Longer gaps are beyond every limit; not to be tokenized.
            longest = 16 * (self._limits.max_tokens_between + 1)
            pieces[1:-1] = [piece if len(piece) <= longest else "x " * longest for piece in pieces[1:-1]]
            before, *gaps, after = self._tokenizer.words([pieces[0][-longest:], *pieces[1:-1], pieces[-1][:longest]])
            for pattern in sentence_patterns(gaps, self._limits, before=before, after=after):
                head, tail = found[members[pattern.head]][2], found[members[pattern.tail]][2]
                if head != tail and not _is_list(pattern.tokens):
                    cells[f"{head}\t{tail}\t{' '.join(pattern.tokens)}"] += 1

    def _mentions(
        self, text: str, subject: str, aliases: "re.Pattern[str] | None", more: Iterable[tuple[int, int, str]]
    ) -> list[tuple[int, int, str]]:
        names = self._gazetteer.names
        found: list[tuple[int, int, str]] = [(s, -e, names[n]) for s, e, n in self._gazetteer.find_names(text)]
        found += [(m.start(), -m.end(), _iso_date(m)) for m in _DATE.finditer(text)]
        if aliases is not None:
            found += [(m.start(), -m.end(), subject) for m in aliases.finditer(text)]
        return _longest([*found, *more])


def _is_list(tokens: Sequence[str]) -> bool:
    """Two items of a list with others between them: ``$ARG1 , $ENT and $ARG2`` says nothing about the two."""
    return ENTITY in tokens and all(token in _LIST_TOKENS for token in tokens)


def _longest(found: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Start, negative end and name in any order -> start, end and name without overlap, the longest from the left."""
    chosen: list[tuple[int, int, str]] = []
    for start, negative_end, name in sorted(found, key=itemgetter(0, 1)):
        if not chosen or start >= chosen[-1][1]:
            chosen.append((start, -negative_end, name))
    return chosen


def _subject_aliases(subject: str, opening: str) -> "re.Pattern[str] | None":
    """What else names the subject of a person's document; None for other documents."""
    words = subject.split()
    if len(words) < 2 or not all(word[0].isupper() for word in (words[0], words[-1])) or "," in subject:
        return None
    if not _PERSON.search(opening) or len(_PERSONAL.findall(opening)) < _MIN_PRONOUNS:
        return None
    return re.compile(rf"{_SUBJECT.pattern}|\b{re.escape(words[-1])}\b")


def _iso_date(match: "re.Match[str]") -> str:
    day, month, year, month_first, day_second, year_third = match.groups()
    number = _MONTHS.index(month or month_first) + 1
    return f"{int(year or year_third):04d}-{number:02d}-{int(day or day_second):02d}"


def bare_name(title: str) -> str:
    """A title or knowledge-base name as it stands in a text.

    Example:
        >>> bare_name("Mercury (planet)"), bare_name("Democratic_Party_(United_States)"), bare_name('"Addiction"')
        ('Mercury', 'Democratic Party', 'Addiction')
    """
    return _PARENTHESIS.sub("", title.replace("_", " ").strip().strip('"')).strip()


def name_variants(name: str) -> list[str]:
    """What a text may call a title or knowledge-base name; the bare name first.

    Example:
        >>> name_variants("Burlington,_Vermont"), name_variants("English_language")
        (['Burlington, Vermont', 'Burlington'], ['English language', 'English'])
    """
    bare = bare_name(name)
    return list(dict.fromkeys([bare, bare.partition(",")[0], _KIND_SUFFIX.sub("", bare)]))


def distinctive_names(names: Iterable[str], texts: Iterable[str]) -> list[str]:
    """Names less those of one word that is mostly written in lower case (``Will``, ``It``).

    A name of one word stays when at most a fifth of its occurrences is in lower case.

    Args:
        names: Any names.
        texts: Paragraphs to count the forms in; 40,000 are read.

    Returns:
        Distinct names that hold a letter and have at least three characters, sorted.
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
