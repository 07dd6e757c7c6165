"""Finds a document's prose for its summary, the sentences that need the previous one, and the subject.

Headings, items, rows of tables, programs, greetings, signatures, navigation and licences are not prose. A sentence that
begins with a pronoun needs the one before it. The subject is the most frequent word, with preference
for words of the title and the first sentence.
Shape suffixes: S sentences.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Self

import numpy as np

from facets.arrays import Bools, Doubles, Ints
from facets.language.interruption import check_interrupted
from facets.language.markup import STOPS, WIDE
from facets.language.sentences import Sentence
from facets.language.terms import terms
from facets.language.tokenizer import Tokenizer
from facets.language.vocabulary import Vocabulary

_SENTENCE_END = re.compile(rf"[{STOPS}][\"')\]*_\u2019\u201d\u00bb]*$")
_FEWEST_WORDS, _LONG_LINE = 3, 9  # least words of a sentence, and of a line of prose without a full stop
_WORD = re.compile(r"[^\W\d_]{2,}")
# The speaker of a turn: "[10:02] Agent Mira: ", "Q: ".
_SPEAKER = re.compile(r"(?:\[[\d:. apm]+\]\s*)?(?:[^\W\d_][\w.'-]*(?: [^\W\d_][\w.'-]*){0,2}|[QA]):\s+")
_MARKUP = re.compile(
    r"#{1,6}\s|\||[`~]{3}|\$ |>|<[\w!/]|!\[|\[!|[-=*_]{3,}|at [\w.$]+\(|(?:from|import|def|class|return) \w.*[:;)]$"
    r"|[{}();=]+$|\.\. \w|@\w+|Traceback |File \"|https?://\S+$|.*\]\(#"
)
_POLITE = re.compile(
    r"(?:hi|hello|hey|hiya|dear|greetings|good (?:morning|afternoon|evening|day)|welcome|(?:good)?bye|cheers|see you"
    r"|thank(?:s| you)|you(?:'re| are) welcome|no problem|(?:\w+ ){0,3}regards|(?:yours )?(?:sincerely|truly)"
    r"|best wishes|take care|have a (?:nice|good|great|lovely)|how are (?:you|things)|nice to (?:meet|hear)"
    r"|(?:i |we )?hope (?:this|you|that you|all is)|(?:please )?(?:let me|do not hesitate|feel free)"
    r"|is there anything else|(?:glad|happy|sorry) to (?:help|hear)|i(?:'m| am) (?:sorry|glad|happy) to hear"
    r"|lol|haha)\b|(?:great|wonderful|perfect|deal|fine|okay|ok|sure|true|right|agreed|good|nice|hm+)\s*[,.!]",
    re.IGNORECASE,
)
_LONGEST_POLITE = 10  # words; a longer sentence is more than a polite phrase
_ELSEWHERE = re.compile(
    r"copyright\b|\(c\) \d{4}|\u00a9|all rights reserved|licen[cs]ed under|permission is hereby|redistribution and use"
    r"|spdx-|as is\b.{0,20}warrant|without warrant|(?:is|are) confidential|intended recipient|unsubscribe|sent from my"
    r"|^(?:read|see|learn) (?:more|also)\b|^(?:share|subscribe|follow|like|pin|print|click|tap|sign up|log in|rate)\b"
    r".{0,40}$|back to top|leave a (?:comment|reply)|table of contents|cookies? (?:settings|policy)|privacy policy"
    r"|thank you for your (?:patience|understanding|time)|let (?:me|us) know if you have"
    r"|found this (?:helpful|useful)|this review helpful|still have questions|pull requests? (?:are|is) welcome"
    r"|^(?:present|attend(?:ees|ance)|apologies|chair|agenda|minutes (?:taken )?by|recorded by)\b.{0,3}:"
    r"|(?:meeting (?:was )?(?:opened|closed|adjourned|began|started|ended))|(?:opened|closed) the meeting"
    r"|\bwelcomed (?:every|all\b|the new|the members)"
    r"|minutes (?:taken|of the last)|next meeting|wrote:$|^(?:reply|response|answer) from\b",
    re.IGNORECASE,
)
_LEANING = re.compile(
    r"[\"'(*_-]*(?:(?:yes|no|well|so|and|but|also|then|ok|okay|true)\b[,.]? +)?"
    r"(?!it (?:is|was|has been|will be) (?:decided|agreed|recommended|proposed|planned|likely)\b)"  # "it was decided"
    r"(?:this|that|these|those|such|it|its|they|their|theirs|them|he|his|him|she|her|hers|others|another|both|neither"
    r"|the (?:former|latter|same|other|others)"
    r"|(?:\w+ )?(?:one|two|three|some|most|many|all|both|none|each|few) of (?:them|these|those|which))\b",
    re.IGNORECASE,
)
_FEWEST_TURNS = 3
_PROSE_KINDS = frozenset({"paragraph", "item"})
_IN_TITLE = 1000  # a word of the title that the prose repeats is preferred to any other
_OPENING_WORDS = 3  # content words of the first sentence that may name the subject
_RARE = 1e-4  # probability of a word that counts half as much as an unknown one
_QUESTION = re.compile(r"\?[\"')*_]*$")
_QUESTION_FACTOR = 0.6  # chosen on the judged texts (docs/use/summaries.md)


@dataclass(frozen=True, slots=True)
class Prose:
    """How the sentences of a document may be selected."""

    may_stand: Bools  # `[S]`, whether a sentence may be in a summary; at least one may
    leans_on: Ints  # `[S]`, index of the preceding sentence that a sentence depends on; -1: none
    names_subject: Bools  # `[S]`, whether a sentence names the subject of the document, if it has one
    worth: Doubles  # `[S]`, factor for the gain; questions count less
    found: bool  # whether there is any prose; if not, every sentence with a word may be in a summary

    @classmethod
    def unrestricted(cls, num_sentences: int) -> Self:
        """Any sentence may be selected."""
        yes, no = np.ones(num_sentences, dtype=np.bool_), np.zeros(num_sentences, dtype=np.bool_)
        return cls(yes, np.full(num_sentences, -1), no, np.ones(num_sentences), found=True)


def prose_of(
    sentences: Sequence[Sentence], tokenizer: Tokenizer, vocabulary: Vocabulary, *, are_given: bool = False
) -> Prose:
    r"""Finds the sentences of a document that may be in its summary.

    ``sentences``: at least one, of one document, in order. ``vocabulary``: gives word frequencies. ``are_given``: the
    caller split the document, so sentences may lack a full stop and need not be adjacent.
    """
    texts = [" ".join(sentence.said.split()) for sentence in sentences]
    is_talk = _is_talk(texts)
    said = [_SPEAKER.sub("", text, count=1) if is_talk else text for text in texts]
    in_prose = [sentence.kind in _PROSE_KINDS for sentence in sentences]
    may_stand = _may_stand(said, in_prose, is_talk=is_talk, are_given=are_given)
    found = any(may_stand)
    if not found:
        may_stand = [_WORD.search(text) is not None and not _MARKUP.match(text) for text in said]
        may_stand = may_stand if any(may_stand) else [True] * len(said)
    may_stand_S = np.array(may_stand)
    subject_S = _names_subject(said, may_stand_S, tokenizer, vocabulary)
    leans_on_S = np.full(len(said), -1)
    if found and not are_given:
        for before, sentence in pairwise(map(int, np.flatnonzero(may_stand_S))):
            if _LEANING.match(said[sentence]):
                leans_on_S[sentence] = before
    worth_S = np.where([_QUESTION.search(text) is not None for text in said], _QUESTION_FACTOR, 1.0)
    return Prose(may_stand_S, leans_on_S, subject_S, worth_S, found)


def _is_talk(texts: Sequence[str]) -> bool:
    """Whether two or more speakers take turns."""
    speakers = Counter(match[0].rpartition("]")[2].strip() for text in texts if (match := _SPEAKER.match(text)))
    return len(speakers) >= 2 and speakers.most_common(2)[1][1] >= 2 and speakers.total() >= _FEWEST_TURNS


def _may_stand(said: Sequence[str], in_prose: Sequence[bool], *, is_talk: bool, are_given: bool) -> list[bool]:
    """Which sentences are prose; if no line has a full stop, long lines count as prose."""
    fewest = 1 if are_given else _FEWEST_WORDS
    kinds = []
    for text, is_candidate in zip(said, in_prose, strict=True):
        check_interrupted()
        words = sum(any(map(str.isalpha, word)) for word in text.split()) + len(WIDE.findall(text))
        is_prose = is_candidate and words >= fewest and not is_boilerplate(text)
        asks = _QUESTION.search(text) is not None
        kinds.append((is_prose, are_given or _SENTENCE_END.search(text) is not None, asks, words))
    stated = [is_prose and has_stop and (is_talk or not asks) for is_prose, has_stop, asks, _ in kinds]
    if any(stated):
        return stated
    return [is_prose and (has_stop or words >= _LONG_LINE) for is_prose, has_stop, _, words in kinds]


def is_boilerplate(text: str) -> bool:
    """Whether a sentence is markup, a greeting, a farewell, navigation or part of a licence."""
    if _MARKUP.match(text) or _ELSEWHERE.search(text):
        return True
    return len(text.split()) <= _LONGEST_POLITE and _POLITE.match(text) is not None


def _names_subject(said: Sequence[str], may_stand_S: Bools, tokenizer: Tokenizer, vocabulary: Vocabulary) -> Bools:
    words_of = [[word for word in words if len(word) > 2 and word.isalpha()] for words in tokenizer.words(said)]
    words = sorted(set(chain.from_iterable(words_of)))
    rows = vocabulary.rows(words)
    is_stop = np.append(vocabulary.is_stop, False)[rows] & (rows != vocabulary.unknown_row)
    stems = {word: terms(word)[0] for word, stop in zip(words, is_stop, strict=True) if not stop}
    worth: dict[str, float] = {}
    for word, weight in zip(words, _RARE / (_RARE + np.append(vocabulary.probabilities, 0.0)[rows]), strict=True):
        if word in stems:
            worth[stems[word]] = min(worth.get(stems[word], 1.0), float(weight))
    stems_of = [[stems[word] for word in own_words if word in stems] for own_words in words_of]
    standing = np.flatnonzero(may_stand_S)
    counts = Counter(stem for sentence in standing for stem in set(stems_of[sentence]))
    first = int(standing[0])
    opening, title = set(stems_of[first][:_OPENING_WORDS]), set(chain.from_iterable(stems_of[:first]))
    scores = {
        stem: worth[stem] * count * (1 + (stem in opening)) * (_IN_TITLE if stem in title else 1)
        for stem, count in counts.items()
    }
    subject = max(scores, key=lambda stem: (scores[stem], stem), default="")
    return np.array([subject in own_stems for own_stems in stems_of]) & may_stand_S
