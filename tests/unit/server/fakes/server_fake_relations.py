"""A fake engine of relations: the words a pattern shares with a relation's examples."""

import difflib
import threading
from dataclasses import replace
from itertools import pairwise

from facets_server.relations.served import ServedRelations
from server_fakes import FakeInfo

from facets.errors import ConflictError, InvalidInputError, NotFoundError
from facets.language.tokenizer import Tokenizer
from facets.relations.assertion import assertion_of
from facets.relations.entailment import Entailment, EntailmentLabel
from facets.relations.entities import check_spans
from facets.relations.patterns import sentence_groups, sentence_patterns, tokenize_patterns
from facets.relations.results import (
    EntityMention,
    EntityPair,
    FacetMeeting,
    FacetRelations,
    NearRelation,
    PatternScore,
    RankedTail,
    Relation,
    RelationScore,
    TailMention,
)

TRAINED = {
    "birthPlace": ("$ARG1 was born in $ARG2", "$ARG1 , a native of $ARG2"),
    "employer": ("$ARG1 works for $ARG2",),
    "spouse": ("$ARG1 is married to $ARG2", "$ARG1 , the wife of $ARG2"),
}
NUM_FACETS = 2
_NEGATIONS = ("not", "never")


class FakeRelationEngine:
    """Has the methods of ``RelationEngine``.

    Attributes:
        batches: Patterns of each call of ``score``.
        gate: Scoring waits while it is cleared.
        poison: Word that makes scoring fail.
    """

    def __init__(self):
        self.added = {}
        self.thresholds = {}
        self.batches = []
        self.gate = threading.Event()
        self.gate.set()
        self.started = threading.Event()
        self.poison = ""
        self._tokenizer = Tokenizer()

    def hold(self):
        """Work waits for the gate from now on; ``started`` tells when some has come so far."""
        self.started.clear()
        self.gate.clear()

    def score(self, patterns, relations=None, *, top_k=None, evidence=True):
        tokens = tokenize_patterns(patterns, self._tokenizer)
        self.batches.append(len(patterns))
        self.started.set()
        assert self.gate.wait(30), "the test forgot to open the gate"
        if self.poison and any(self.poison in words for words in tokens):
            raise RuntimeError(f"cannot read {self.poison}")
        return [self._scores(words, self._asked(relations), top_k, evidence=evidence) for words in tokens]

    def extract(
        self,
        texts,
        *,
        spans=None,
        finder=None,
        relations=None,
        limits=None,
        max_relations_per_pair=1,
        top_k=None,
        evidence=True,
    ):
        assert (spans is None) != (finder is None)
        asked = self._asked(relations)
        spans = finder.find(texts) if spans is None else spans
        found = []
        for number, (text, own) in enumerate(zip(texts, spans, strict=True)):
            ordered = check_spans(text, own, ("spans", number))
            pairs = []
            for sentence, members in sentence_groups(text, ordered, self._tokenizer):
                entities = [ordered[member] for member in members]
                gaps = [self._tokenizer.words([text[one.end : other.start]])[0] for one, other in pairwise(entities)]
                for pattern in sentence_patterns(gaps, limits):
                    head, tail = entities[pattern.head], entities[pattern.tail]
                    pairs.append(
                        EntityPair(
                            number,
                            EntityMention(text[head.start : head.end], head.start, head.end, head.type),
                            EntityMention(text[tail.start : tail.end], tail.start, tail.end, tail.type),
                            sentence.start,
                            sentence.end,
                            self._scores(pattern.tokens, asked, top_k, evidence=evidence),
                        )
                    )
            found.append(pairs)
        return found

    def fill_slot(self, head, relation, texts, *, spans=None, finder=None, limits=None, evidence=True):
        if not head.strip():
            raise InvalidInputError("is blank, expected a name", path="head")
        pairs = [
            pair
            for found in self.extract(
                texts, spans=spans, finder=finder, relations=[relation], limits=limits, evidence=evidence
            )
            for pair in found
            if pair.head.text.casefold() == head.casefold()
        ]
        by_tail = {}
        for pair in sorted(pairs, key=lambda pair: -pair.pattern_score.relations[0].score):
            by_tail.setdefault(pair.tail.text, []).append(pair)
        return [
            RankedTail(
                tail,
                best.score,
                best.probability,
                best.accepted,
                tuple(TailMention(pair.text_position, pair) for pair in own),
            )
            for tail, own in by_tail.items()
            for best in [own[0].pattern_score.relations[0]]
        ]

    def entailment(self, premises, hypotheses):
        results = []
        left = tokenize_patterns(premises, self._tokenizer, path=("premises",))
        right = tokenize_patterns(hypotheses, self._tokenizer, path=("hypotheses",))
        for one, other in zip(left, right, strict=True):
            forward, backward = _share(other, one), _share(one, other)
            differs = any(word in one for word in _NEGATIONS) != any(word in other for word in _NEGATIONS)
            label = EntailmentLabel.NEUTRAL
            if not differs and (forward == 1 or backward == 1):
                label = EntailmentLabel.PARAPHRASE
                if forward != backward:
                    label = EntailmentLabel.ENTAILS if forward == 1 else EntailmentLabel.ENTAILED_BY
            scores = (forward, backward, forward - backward, label, 0.75, differs, (forward + backward) / 2)
            results.append(Entailment(" ".join(one), " ".join(other), *scores, "shared words"))
        return results

    def relations(self):
        known = [Relation(name=name, threshold=0.5, num_pairs=10) for name in TRAINED]
        known += [
            Relation(name=name, threshold=self.thresholds[name], examples=examples)
            for name, examples in self.added.items()
        ]
        return sorted(known, key=lambda info: info.name)

    def add_relation(self, name, examples, *, threshold=None):
        if not name.strip():
            raise InvalidInputError("has 0 characters, expected 1 to 200", path="name")
        if not examples:
            raise InvalidInputError("has 0 items, expected 1 to 100", path="examples")
        tokenize_patterns(examples, self._tokenizer, path=("examples",))
        if name in TRAINED or name in self.added:
            raise ConflictError(f"relation {name!r} exists already")
        self.added[name] = tuple(examples)
        self.thresholds[name] = 0.5 if threshold is None else threshold
        return Relation(name=name, threshold=self.thresholds[name], examples=tuple(examples))

    def remove_relation(self, name):
        if name in TRAINED:
            raise InvalidInputError(f"is {name!r}, the model's own, expected an added one", path="name")
        if name not in self.added:
            raise self._unknown(name)
        del self.added[name]

    def near_names(self, name, *, top_k=5):
        return difflib.get_close_matches(name, [*TRAINED, *self.added], n=top_k)

    def _unknown(self, name):
        near = ", ".join(self.near_names(name))
        return NotFoundError(f"no relation {name!r}; near names: {near}", resource_type="relation", resource_name=name)

    def _asked(self, relations):
        examples = {**TRAINED, **self.added}
        for name in relations or ():
            if name not in examples:
                raise self._unknown(name)
        return {name: examples[name] for name in relations} if relations else examples

    def _scores(self, tokens, asked, top_k=None, *, evidence=True):
        assertion = assertion_of(tokens)
        cue = assertion.cue
        scores = []
        for name, examples in asked.items():
            similar = max(_share(words, tokens) for words in tokenize_patterns(examples, self._tokenizer))
            score = -1.0 if cue else 2 * similar - 1
            meeting = FacetMeeting(0, 1, similar)
            known = " ".join(tokens) in examples
            scores.append(
                RelationScore(
                    name, score, 0.0 if cue else similar, score >= 0.5, score, 1.0 if known else None, meeting
                )
            )
        scores.sort(key=lambda score: (-score.probability, score.relation))
        near = tuple(NearRelation(score.relation, score.meeting.cosine) for score in scores[:2])
        facets = tuple(FacetRelations(facet, near) for facet in range(NUM_FACETS)) if evidence else ()
        if not evidence:
            scores = [replace(score, meeting=None) for score in scores]
        is_known, none = scores[0].universal_schema_score is not None, 1 - scores[0].probability
        shown = tuple(scores[:top_k])
        return PatternScore(" ".join(tokens), shown, none, is_known, facets, assertion.status, assertion.cue)

    def close(self):
        """Nothing is open."""


def _share(wanted, given):
    """Share of ``wanted`` that stands in ``given``, 0 when the arguments are exchanged."""
    if wanted.index("$ARG1") < wanted.index("$ARG2") and given.index("$ARG1") > given.index("$ARG2"):
        return 0.0
    words = [word for word in wanted if not word.startswith("$")]
    return sum(word in given for word in words) / max(1, len(words))


def fake_relations(name="fake-relations"):
    """A served fake and its engine."""
    engine = FakeRelationEngine()
    info = FakeInfo(
        name=name,
        revision="r1",
        space="fake",
        task="relations",
        num_facets=NUM_FACETS,
        dim=8,
        max_tokens=20,
        vocabulary_size=100,
    )
    return ServedRelations(info, engine), engine
