"""What a sentence says word by word: content words with their polarity, numbers, dates, quantifiers, roles.

Polarity follows explicit cues with a scope, as NegEx does (Chapman et al. 2001): a cue counts up to the next border of
its clause, two cues cancel each other, and a word that is itself a negation ("unlocked", "non-residents") is read as
the word that it negates. Verbs that imply that their complement did not happen are cues ("forgot to", "failed to";
implicatives, Karttunen 1971); those that imply that it did ("managed to") are read past.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from facets.language.tokenizer import Token
from facets.language.wordnet import WordNet, wordnet
from facets.texts import lexicon
from facets.texts.quantities import ValueKind, values_of

MAX_TOKENS = 128  # of a sentence; what follows is not compared word by word


@dataclass(frozen=True, slots=True)
class Cue:
    """What turns the polarity of the words in its scope."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Word:
    """A word that is compared."""

    text: str  # in lower case; of a negative word ("unlocked") what it negates ("locked")
    place: int  # which token of the sentence
    start: int  # first character in the text
    end: int  # one past the last
    cues: tuple[Cue, ...] = ()  # what turns its polarity, an odd number negates it
    weak: bool = False  # it says little: a pronoun, a light verb, an implicative verb
    is_verb: bool = False  # it is used as a verb here
    preposition: str = ""  # what links it to the sentence, e.g. `in`; empty: nothing.
    kind: ValueKind | None = None  # of a number or date; None: any other word
    value: str = ""  # of a number or date, normalized

    @property
    def negated(self) -> bool:
        """Whether an odd number of cues turns it."""
        return len(self.cues) % 2 == 1


@dataclass(frozen=True, slots=True)
class Marker:
    """A function word that decides; ``value`` is what it says, of a preposition whether anything follows it."""

    text: str
    kind: str
    value: str
    place: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Wording:
    """A sentence, read."""

    words: tuple[Word, ...]  # what is compared, in order
    # Of each word the word that it belongs to, an adjective to its noun, an argument to its verb, and how: `mod`,
    # `agent`, `patient`, `prep` or `verb`; -1 and `root` where it belongs to none.
    links: tuple[tuple[int, str], ...]
    markers: tuple[Marker, ...]  # prepositions, quantifiers, modal verbs, in order
    passive_verbs: frozenset[int]  # places of participles in the passive voice with an agent behind `by`
    indefinite: bool  # it introduces whom it is about: "A man is playing", "There is no man playing"


def read_wording(tokens: Sequence[Token]) -> Wording:
    """Reads a sentence.

    Args:
        tokens: Of one sentence, with offsets in its text; beyond 128 none is read.

    Example:
        >>> from facets.language.tokenizer import Tokenizer
        >>> wording = read_wording(Tokenizer().tokenize(["She forgot to lock the two doors."])[0])
        >>> [(word.text, word.negated, word.value) for word in wording.words if not word.weak]
        [('lock', True, ''), ('two', True, '2'), ('doors', True, '')]
    """
    tokens = tokens[:MAX_TOKENS]
    forms = [token.text.lower().replace("\u2019", "'") for token in tokens]
    cues = _cues(forms, tokens)
    values = values_of(forms)
    # A capital inside a sentence begins a name, unless a headline has one everywhere.
    capitals = [i for i, token in enumerate(tokens) if i and token.text[0].isupper() and token.text.lower() != "i"]
    names = frozenset(capitals if 2 * len(capitals) < len(tokens) else ())
    verbs = _verbs(forms, wordnet()) - names
    words: list[Word] = []
    for place, (form, token) in enumerate(zip(forms, tokens, strict=True)):
        kind, value = values.get(place, (None, ""))
        is_continued = kind is ValueKind.NUMBER and not value  # a part of the number before it
        if is_continued or (kind is None and not _is_compared(form)):
            continue
        text, is_negative = (form, False) if kind else _without_prefix(form, wordnet())
        found = tuple(cue for scope, cue in cues if place in scope and cue.start != token.start)
        if is_negative:
            found += (Cue(token.text.lower(), token.start, token.end),)
        words.append(
            Word(
                lexicon.PRONOUNS.get(text, text),
                place,
                token.start,
                token.end,
                cues=found,
                weak=kind is None and _is_weak(form),
                is_verb=place in verbs,
                preposition=_preposition(forms, place, verbs),
                kind=kind,
                value=value,
            )
        )
    passive = _passive(forms, verbs)
    return Wording(
        tuple(words), tuple(_links(words, passive)), tuple(_markers(forms, tokens)), passive, _is_indefinite(forms)
    )


def _is_compared(form: str) -> bool:
    return form[0].isalnum() and (form not in lexicon.FUNCTION_WORDS or form in lexicon.PRONOUNS)


@lru_cache(50_000)
def _is_weak(form: str) -> bool:
    is_light = any(lemma[2:] in lexicon.LIGHT for lemma in (*wordnet().lemmas(form), f"x:{form}"))
    return is_light or form in lexicon.PRONOUNS or form in lexicon.IMPLICATIVES


def _is_indefinite(forms: Sequence[str]) -> bool:
    first, second = ([*forms, "", ""])[:2]
    return (first in lexicon.INDEFINITE or first in lexicon.NUMBERS) and second != "of"


def _links(words: Sequence[Word], passive: frozenset[int]) -> Iterator[tuple[int, str]]:
    """Head of each word and the link to it, by what stands around it."""
    verbs = [i for i, word in enumerate(words) if word.is_verb]
    for i, word in enumerate(words):
        before = max((verb for verb in verbs if verb < i), default=-1)
        after = min((verb for verb in verbs if verb > i), default=-1)
        if word.is_verb:
            yield before, "verb" if before >= 0 else "root"
        elif _is_modifier(words, i):
            yield i + 1, "mod"
        elif word.preposition:
            is_agent = word.preposition == "by" and before >= 0 and words[before].place in passive
            head = before if before >= 0 else i - 1 if i else after
            yield head, ("agent" if is_agent else "prep") if head >= 0 else "root"
        elif after >= 0 and _is_subject(words, i, before, after):
            yield after, "patient" if words[after].place in passive else "agent"
        elif before >= 0:
            yield before, "patient"
        else:
            yield after, "agent" if after >= 0 else "root"


def _is_modifier(words: Sequence[Word], i: int) -> bool:
    return i + 1 < len(words) and words[i + 1].place == words[i].place + 1 and not words[i + 1].is_verb


def _is_subject(words: Sequence[Word], i: int, before: int, after: int) -> bool:
    """Nothing but modifiers and phrases with prepositions stands between it and its verb, and it is no object."""
    is_object = before >= 0 and words[before].place >= words[i].place - 3
    return not is_object and all(words[k].preposition or _is_modifier(words, k) for k in range(i + 1, after))


@lru_cache(50_000)
def _without_prefix(form: str, words: WordNet) -> tuple[str, bool]:
    """What a negative word negates, and whether it is one: ``unlocked`` is ``locked`` and True."""
    for prefix in ("un", "in", "im", "ir", "il", "dis", "non"):
        stem = form.removeprefix(prefix).lstrip("-")
        if stem != form and len(stem) > 3 and words.lemmas(stem):
            if prefix == "non" or words.opposition(form, stem) >= 1.0 or (prefix == "un" and not words.lemmas(form)):
                return stem, True
    return form, False


def _cues(forms: Sequence[str], tokens: Sequence[Token]) -> list[tuple[range, Cue]]:
    """Cues with the places that they turn; those of "no room without a balcony" turn nothing."""
    found = []
    for place, form in enumerate(forms):
        following = forms[place + 1] if place + 1 < len(forms) else ""
        cue = Cue(tokens[place].text.lower(), tokens[place].start, tokens[place].end)
        if form in lexicon.FORBIDDEN:
            found.append((range(_clause_start(forms, place), _clause_end(forms, place)), cue))
        elif form in lexicon.NOT and (form, following) not in lexicon.PSEUDO:
            if form == "nor" and "neither" in forms[:place]:
                continue
            end = _phrase_end(forms, place) if form == "without" else _clause_end(forms, place)
            outer = [one for one in found if place in one[0] and one[1].text in lexicon.WHOLE_CLAUSE]
            if form == "without" and outer:
                found = [one for one in found if one not in outer]
                continue
            found.append((range(place + 1, end), cue))
        elif form in lexicon.NEGATIVE_IMPLICATIVES and _has_complement(form, following):
            found.append((range(place + 1, _clause_end(forms, place)), cue))
    return found


def _has_complement(form: str, following: str) -> bool:
    """``failed to``, ``avoided paying``, ``lacks``: what did not happen follows."""
    return following in lexicon.COMPLEMENT or following.endswith("ing") or form.startswith(("lack", "miss", "prevent"))


def _clause_end(forms: Sequence[str], place: int) -> int:
    """The next border of a clause, or the end."""
    for end in range(place + 1, len(forms)):
        if forms[end] in lexicon.BORDERS and not (forms[end] == "-" and end + 1 < len(forms)):
            return end
    return len(forms)


def _clause_start(forms: Sequence[str], place: int) -> int:
    for start in range(place - 1, -1, -1):
        if forms[start] in lexicon.BORDERS and forms[start] != "-":
            return start + 1
    return 0


def _phrase_end(forms: Sequence[str], place: int) -> int:
    """Behind the noun phrase after a preposition."""
    end = place + 1
    while end < len(forms) and forms[end] not in lexicon.BORDERS and forms[end] not in lexicon.PREPOSITIONS | {"and"}:
        end += 1
    return end


def _verbs(forms: Sequence[str], words: WordNet) -> frozenset[int]:
    """Places of words that are used as verbs, by what stands before them."""
    found: list[int] = []
    has_subject = False
    for place, form in enumerate(forms):
        if form in lexicon.BORDERS or form in lexicon.RELATIVE:
            has_subject = form in lexicon.RELATIVE
        elif not form.isalpha() or form in lexicon.FUNCTION_WORDS:
            has_subject |= form in lexicon.SUBJECTS
        elif words.is_verb(form) and _is_verb_place(forms, place, has_subject, words):
            found.append(place)
        else:
            has_subject = True
    return frozenset(found)


def _is_verb_place(forms: Sequence[str], place: int, has_subject: bool, words: WordNet) -> bool:
    form, before = forms[place], ""
    for other in reversed(forms[max(0, place - 4) : place]):
        if other not in ("not", "n't") and not other.endswith("ly"):
            before = other
            break
    if before in lexicon.BE:
        return form.endswith("ing") or _is_past(form, words)
    if before in lexicon.MODALS or before in lexicon.DO or before == "to":
        return True
    if before in lexicon.HAVE:
        return _is_past(form, words)
    is_noun_place = before in lexicon.DETERMINERS or before in lexicon.PREPOSITIONS or before in lexicon.NUMBERS
    is_finite = before in lexicon.PRONOUNS or before in lexicon.WHOLE_CLAUSE or _is_inflected(form, words)
    return has_subject and not is_noun_place and not before[:1].isdigit() and is_finite


@lru_cache(50_000)
def _is_past(form: str, words: WordNet) -> bool:
    return words.is_verb(form) and (form.endswith(("ed", "en", "wn")) or f"v:{form}" != words.lemmas(form)[0])


@lru_cache(50_000)
def _is_inflected(form: str, words: WordNet) -> bool:
    lemmas = words.lemmas(form)
    verbal = [lemma for lemma in lemmas if lemma.startswith("v:")]
    if not verbal:
        return False
    if form.endswith(("ed", "ing", "s")) or f"v:{form}" not in lemmas or len(verbal) > 1:
        return True
    return form in lexicon.SAME_PAST or not any(lemma.startswith("n:") for lemma in lemmas)


def _preposition(forms: Sequence[str], place: int, verbs: frozenset[int]) -> str:
    """The preposition before the phrase that a word stands in."""
    for before in range(place - 1, max(-1, place - 6), -1):
        form = forms[before]
        if form in lexicon.PREPOSITIONS:
            return form
        if before in verbs or form in lexicon.PHRASE_BORDERS:
            return ""
    return ""


def _passive(forms: Sequence[str], verbs: frozenset[int]) -> frozenset[int]:
    found = set()
    for place in verbs:
        is_participle = not forms[place].endswith("ing") and any(
            form in lexicon.BE for form in forms[max(0, place - 4) : place]
        )
        if is_participle and "by" in forms[place + 1 : place + 12]:
            found.add(place)
    return frozenset(found)


def _markers(forms: Sequence[str], tokens: Sequence[Token]) -> Iterator[Marker]:
    for place, form in enumerate(forms):
        following = forms[place + 1] if place + 1 < len(forms) else ""
        if (form, following) in lexicon.BOUNDS:
            kind, value = "quantifier", lexicon.BOUNDS[form, following]
        elif form in lexicon.PREPOSITIONS:
            kind, value = "preposition", "" if following and following not in lexicon.BORDERS else lexicon.PARTICLE
        elif form in lexicon.QUANTIFIERS:
            kind, value = "quantifier", lexicon.QUANTIFIERS[form]
        elif (
            form in lexicon.OBLIGING
            or (form in ("have", "has", "need", "needs") and following == "to")
            or form == "need"
        ):
            kind, value = "modal", "must"
        elif form in lexicon.PERMITTING:
            kind, value = "modal", "may"
        else:
            continue
        last = place + 1 if (form, following) in lexicon.BOUNDS else place
        yield Marker(" ".join(forms[place : last + 1]), kind, value, place, tokens[place].start, tokens[last].end)
