"""How likely a person is to pick each sentence of a document for its summary.

A logistic function, fitted to files with marked sentences, to news and to papers (``facets_lab.texts.importance``). In
notes the answer reader, which learned what writers mark, says most; among sentences of prose coverage chooses.
Shape suffixes: S sentences, F features.
"""

import re
from collections.abc import Sequence

import numpy as np

from facets.arrays import Doubles
from facets.language.interruption import check_interrupted
from facets.language.languages import DEFAULT_LANGUAGE, detect
from facets.language.markup import STOPS
from facets.language.sentences import Sentence
from facets.model.answer_reader import AnswerReader

QUESTION = "What is this about, and what matters in it?"

_SENTENCE_END = re.compile(rf"[{STOPS}][\"')\]*_\u2019\u201d\u00bb]*$")
_MONEY = re.compile(r"[$\u20ac\u00a3\u00a5%]|\b(?:eur|euros?|usd|dollars?|pounds?|percent)\b", re.IGNORECASE)
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
    r"(?:this|that|these|those|such|it|its|they|their|theirs|them|he|his|him|she|her|hers|others|another|both|neither"
    r"|the (?:former|latter|same|other|others)"
    r"|(?:\w+ )?(?:one|two|three|some|most|many|all|both|none|each|few) of (?:them|these|those|which))\b",
    re.IGNORECASE,
)
_PROSE_KINDS = frozenset({"paragraph", "item"})
_FEWEST_WORDS, _LONG_LINE = 3, 9  # of a sentence, and of a line of prose without a full stop
_SHORT, _ENOUGH = 50, 80  # characters: a shorter sentence is a note, and a longer one is no better
_MOST_READ, _READ_CHARS = 64, 800  # sentences of a document, those with the greatest worth without the reader; of each
_LEAST_GAIN = 1e-9
FEWEST_NOTES = 0.2  # share of a document; in one of prose the reader does not choose better than coverage
# Of a sentence: logarithm of its length, an item, a first word that refers to another one, boilerplate (by hand: the
# files have little of it), no full stop; place and money in a document of notes.
_WEIGHTS = np.array([2.37, 0.41, -0.19, -6.0, -2.66, 0.32, 0.87])
_WEIGHTS_BESIDE_READER = np.array([1.77, 0.46, -0.53, -6.0, -1.71, 1.61, 0.98])


def said_of(sentences: Sequence[Sentence]) -> list[str]:
    """The sentences as the reader reads them."""
    return [" ".join(sentence.said.split()) for sentence in sentences]


def has_prose(sentences: Sequence[Sentence]) -> bool:
    """Whether any sentence is more than a heading, a row of a table, code or a keyword."""
    return any(
        sentence.kind in _PROSE_KINDS
        and len(sentence.said.split()) >= (_FEWEST_WORDS if _SENTENCE_END.search(sentence.said.strip()) else _LONG_LINE)
        for sentence in sentences
    )


def importance(sentences: Sequence[Sentence], gains_S: Doubles, reader: AnswerReader | None) -> Doubles:
    """The odds that each sentence of a document is picked, ``[S]``, relative to those of the most important one.

    ``gains_S``: coverage of the document by each sentence. Of a long document the reader reads the sentences that are
    picked without it; the others are no better than the worst of these.
    """
    texts = said_of(sentences)
    features_SF, share_of_notes = features(sentences, texts)
    log_odds_S: Doubles = features_SF @ _WEIGHTS
    is_readable = share_of_notes >= FEWEST_NOTES and detect([" ".join(texts)]) == DEFAULT_LANGUAGE
    if reader is not None and reader.config.summary_weight and is_readable:
        worth_S = log_odds_S + np.log(np.maximum(gains_S, _LEAST_GAIN))
        read = np.sort(np.argsort(-worth_S, kind="stable")[:_MOST_READ])
        answers = reader.read_whole(QUESTION, texts[0], [texts[place][:_READ_CHARS] for place in read])
        found = features_SF[read] @ _WEIGHTS_BESIDE_READER + reader.config.summary_weight * share_of_notes * answers
        log_odds_S = np.full(len(texts), found.min())
        log_odds_S[read] = found
    odds_S: Doubles = np.exp(log_odds_S - log_odds_S.max())
    return odds_S


def features(sentences: Sequence[Sentence], texts: Sequence[str]) -> tuple[Doubles, float]:
    """What the layout says of each sentence, ``[S, F]``, and the share of notes: high in chats, minutes and forms.

    ``sentences``: at least one, in order; ``texts``: see ``said_of``.
    """
    lengths_S = np.array(list(map(len, texts)))
    has_end_S = np.array([_SENTENCE_END.search(text) is not None for text in texts])
    share_of_notes = 1 - float((has_end_S & (lengths_S >= _SHORT)).mean())
    columns = (
        np.log1p(np.minimum(lengths_S, _ENOUGH)),
        [sentence.kind == "item" for sentence in sentences],
        [_LEANING.match(text) is not None for text in texts],
        [
            is_boilerplate(text.removeprefix(speaker[0]) if (speaker := _SPEAKER.match(text)) else text)
            for text in texts
        ],
        (1 - share_of_notes) * ~has_end_S,
        share_of_notes * np.linspace(0, 1, len(texts)),
        share_of_notes * np.array([_MONEY.search(text) is not None for text in texts]),
    )
    return np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=1), share_of_notes


def is_boilerplate(text: str) -> bool:
    """Whether a sentence is markup, a greeting, a farewell, navigation or part of a licence."""
    check_interrupted()
    if _MARKUP.match(text) or _ELSEWHERE.search(text):
        return True
    return len(text.split()) <= _LONGEST_POLITE and _POLITE.match(text) is not None
