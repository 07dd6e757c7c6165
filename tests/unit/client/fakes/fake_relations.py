# ruff: noqa: N802 (gRPC names the methods)
"""RelationService of the fake server: scores made of hashes, faults on demand."""

import zlib
from itertools import permutations

import grpc
from facets_proto.v1 import common_pb2, relations_pb2
from fake_world import Service, fail, status_of

pb = relations_pb2
RELATIONS = ("birthPlace", "employer", "spouse")
MODEL = common_pb2.ModelVersion(name="relations", revision="r1")
TEXT = "\u00c9mile Zola was born in Paris."
NAMES = ["\u00c9mile Zola", "Paris"]
BORN = "$ARG1 was born in $ARG2"


def fake_probability(pattern, relation):
    """Of a pattern and a relation, always the same."""
    return zlib.crc32(f"{pattern}|{relation}".encode()) / 2**32


class Relations(Service):
    service = relations_pb2.DESCRIPTOR.services_by_name["RelationService"]

    """Knows ``RELATIONS``; every two entities of a text are a pair; refuses what has REFUSE in it."""

    def __init__(self, world):
        super().__init__(world)
        self.added = {}

    def _refuse(self, context, message, field="", code=grpc.StatusCode.INVALID_ARGUMENT):
        fail(context, status_of(code, message, reason=code.name, field=field))

    def _check(self, context, field, texts, limit):
        if len(texts) > limit:
            self._refuse(context, f"{field} has {len(texts)} items, the limit is {limit}", field)
        for i, text in enumerate(texts):
            if "REFUSE" in text or not text.strip():
                self._refuse(context, f"{field}[{i}] is refused", f"{field}[{i}]")

    def _pattern(self, pattern, names, top_k, evidence):
        names = names or (*RELATIONS, *self.added)
        ranked = sorted(names, key=lambda name: -fake_probability(pattern, name))[: top_k or None]
        scores = [
            pb.RelationScore(
                relation=name,
                score=2 * fake_probability(pattern, name) - 1,
                probability=fake_probability(pattern, name),
                accepted=fake_probability(pattern, name) >= 0.5,
                symmetric_score=0.25,
                universal_schema_score=0.5 if name == RELATIONS[0] else None,
                meeting=pb.FacetMeeting(pattern_facet=1, relation_facet=2, cosine=0.5) if evidence else None,
                similar_patterns=[pb.SimilarPattern(pattern="$ARG1 wed $ARG2", score=0.9)] if evidence else [],
                known_pairs=[pb.NamedPair(head="Ann", tail="Bo")] if evidence else [],
            )
            for name in ranked
        ]
        near = [pb.NearRelation(relation=RELATIONS[0], cosine=0.75)]
        return pb.PatternScore(
            pattern=pattern,
            relations=scores,
            no_relation_probability=0.125,
            assertion=pb.ASSERTION_STATUS_NEGATED if " not " in pattern else pb.ASSERTION_STATUS_ASSERTED,
            assertion_cue="not" if " not " in pattern else "",
            known=True,
            facets=[pb.FacetRelations(facet=0, relations=near)] if evidence else [],
        )

    def _pairs(self, message, names, asked, top_k, evidence):
        text = message.text
        spans = [(entity.start, entity.end) for entity in message.entities]
        spans = spans or [(text.index(name), text.index(name) + len(name)) for name in names if name in text]
        for (start, end), (other_start, other_end) in permutations(spans, 2):
            yield pb.EntityPair(
                head=pb.EntityMention(text=text[start:end], start=start, end=end),
                tail=pb.EntityMention(text=text[other_start:other_end], start=other_start, end=other_end),
                sentence_end=len(text),
                pattern_score=self._pattern(f"$ARG1 {start} $ARG2", asked, top_k, evidence),
            )

    def ExtractRelations(self, request, context):
        self._check(context, "texts", [message.text for message in request.texts], self.world.max_texts)
        for name in request.relations:
            if name not in RELATIONS:
                near = "no relation {!r}; near names: {}".format(name, ", ".join(RELATIONS))
                self._refuse(context, near, code=grpc.StatusCode.NOT_FOUND)
        top_k = request.top_k if request.HasField("top_k") else 0
        reply = pb.ExtractRelationsResponse(model=MODEL)
        for message in request.texts:
            pairs = list(self._pairs(message, request.gazetteer_names, request.relations, top_k, request.evidence))
            for pair in pairs:
                if not top_k:
                    accepted = [score for score in pair.pattern_score.relations if score.accepted]
                    del pair.pattern_score.relations[:]
                    pair.pattern_score.relations.extend(accepted)
            returned = [pair for pair in pairs if request.include_unrelated or pair.pattern_score.relations]
            spans = [(entity.start, entity.end) for entity in message.entities]
            spans = spans or [
                (message.text.index(name), message.text.index(name) + len(name))
                for name in request.gazetteer_names
                if name in message.text
            ]
            reply.texts.add(
                pairs=returned,
                num_pairs=len(pairs),
                num_not_asserted=len(pairs) if message.text.endswith("?") else 0,
                entities=[pb.EntityMention(text=message.text[s:e], start=s, end=e, type=1) for s, e in spans],
            )
        return reply

    def FillSlots(self, request, context):
        self._check(context, "slots", [slot.head for slot in request.slots], 2)
        reply = pb.FillSlotsResponse(model=MODEL)
        for slot in request.slots:
            filled = reply.slots.add()
            for number, message in enumerate(request.texts):
                for pair in self._pairs(message, request.gazetteer_names, [slot.relation], 1, request.evidence):
                    if pair.head.text == slot.head:
                        best = pair.pattern_score.relations[0]
                        filled.tails.add(
                            tail=pair.tail.text,
                            score=best.score,
                            probability=best.probability,
                            accepted=best.accepted,
                            mentions=[pb.TailMention(text=number, pair=pair)],
                        )
        return reply

    def ScoreRelations(self, request, context):
        self._check(context, "patterns", request.patterns, self.world.max_texts)
        top_k = request.top_k if request.HasField("top_k") else 0
        scores = [self._pattern(pattern, request.relations, top_k, request.evidence) for pattern in request.patterns]
        return pb.ScoreRelationsResponse(scores=scores, model=MODEL)

    def DetectEntailment(self, request, context):
        self._check(context, "pairs", [pair.premise for pair in request.pairs], self.world.max_texts)
        return pb.DetectEntailmentResponse(
            entailments=[
                pb.Entailment(
                    premise=pair.premise,
                    hypothesis=pair.hypothesis,
                    forward_score=0.75,
                    backward_score=0.25,
                    direction=0.5,
                    label="ENTAILMENT_LABEL_ENTAILED_BY",
                    confidence=0.625,
                    negation_differs=" not " in pair.premise,
                    facet_score=0.875,
                    reason="buy, so own",
                )
                for pair in request.pairs
            ],
            model=MODEL,
        )

    def ListRelations(self, request, context):
        known = [pb.Relation(name=name, threshold=0.5, num_pairs=7) for name in RELATIONS]
        spouse = pb.Relation(example="[Ann] wed {Bo}.", aliases=["marriedTo"], head_types=[1], symmetric=True)
        known[-1].MergeFrom(spouse)
        known += self.added.values()
        start = int(request.page_token or 0)
        more = str(start + 2) if start + 2 < len(known) else ""
        return pb.ListRelationsResponse(relations=known[start : start + 2], next_page_token=more, model=MODEL)

    def AddRelation(self, request, context):
        if request.name in (*RELATIONS, *self.added):
            self._refuse(context, f"relation {request.name!r} exists", code=grpc.StatusCode.ALREADY_EXISTS)
        self._check(context, "examples", request.examples, 100)
        threshold = request.threshold if request.HasField("threshold") else 0.375
        self.added[request.name] = pb.Relation(
            name=request.name, threshold=threshold, examples=request.examples, added=True
        )
        return pb.AddRelationResponse(relation=self.added[request.name], model=MODEL)

    def DeleteRelation(self, request, context):
        if request.name not in self.added:
            self._refuse(context, f"no relation {request.name!r}", code=grpc.StatusCode.NOT_FOUND)
        return pb.DeleteRelationResponse(relation=self.added.pop(request.name))
