# ruff: noqa: N802 (gRPC names the methods)
"""The fake server's services about texts."""

import numpy as np
from facets_proto.v1 import common_pb2, texts_pb2
from fake_world import (
    MODEL,
    NUM_FACETS,
    Service,
    check_texts,
    facet_array,
    fake_facets,
    fake_match,
)


class Embedding(Service):
    service = texts_pb2.DESCRIPTOR.services_by_name["EmbeddingService"]

    def reply(self, request):
        arrays = np.stack([fake_facets(text) for text in request.texts])
        return texts_pb2.EmbedResponse(
            facet_embeddings=None if request.vectors_only else facet_array(arrays, request.dtype),
            vectors=facet_array(arrays.mean(1), request.dtype) if request.vectors_only else None,
            token_stats=[common_pb2.TokenStats(num_tokens=len(text.split())) for text in request.texts],
            model=MODEL,
            timings=common_pb2.Timings(total_ms=1.0),
        )

    def Embed(self, request, context):
        check_texts(request.texts, self.world, context)
        return self.reply(request)

    def Explain(self, request, context):
        check_texts(request.texts, self.world, context)
        explanations = []
        for text in request.texts:
            tokens, start = [], 0
            for word in text.split():
                start = text.index(word, start)
                tokens.append(
                    common_pb2.TokenAttention(
                        text=word, start=start, end=start + len(word), attention=len(word) / 4, known=True
                    )
                )
            words = [common_pb2.NearestWord(word="dog", cosine=0.9)] * (request.num_words or 5)
            attended = [common_pb2.AttendedToken(token=len(tokens) - 1, cosine=0.5)]
            facets = [common_pb2.FacetWords(facet=k, words=words, tokens=attended) for k in range(NUM_FACETS)]
            stats = common_pb2.TokenStats(num_tokens=len(tokens), num_unknown_tokens=1, truncated=True)
            explanations.append(texts_pb2.TextExplanation(tokens=tokens, facets=facets, token_stats=stats))
        return texts_pb2.ExplainResponse(explanations=explanations, model=MODEL)


class Similarity(Service):
    service = texts_pb2.DESCRIPTOR.services_by_name["SimilarityService"]

    def Score(self, request, context):
        scores = []
        for pair in request.pairs:
            one, other = fake_facets(pair.first).ravel(), fake_facets(pair.second).ravel()
            cosine = float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))
            score = texts_pb2.PairScore(score=cosine)
            if request.calibrated:
                score.calibrated_score = (cosine + 1) / 2
            if request.explain:
                score.explanation.matches.append(fake_match(self.world))
                score.explanation.first_tokens.add(text=pair.first, attention=1.0, known=True)
                score.explanation.second_tokens.add(text=pair.second, attention=0.0)
            scores.append(score)
        return texts_pb2.ScoreResponse(
            scores=scores,
            method=request.method or texts_pb2.SIMILARITY_METHOD_CODEBOOK,
            attention=request.attention,
            model=MODEL,
            timings=common_pb2.Timings(total_ms=1.0),
        )


class Summarization(Service):
    service = texts_pb2.DESCRIPTOR.services_by_name["SummarizationService"]

    def Summarize(self, request, context):
        summaries = []
        for document in request.documents:
            if document.WhichOneof("source") == "text":
                sentences = [part.strip() + "." for part in document.text.split(".") if part.strip()]
            else:
                sentences = list(document.sentences.sentences)
            kept = sentences[: request.num_sentences or 3]
            summaries.append(
                texts_pb2.Summary(
                    sentences=[
                        texts_pb2.SummarySentence(text=text, sentence=i, selection=i, gain=1 / (i + 1))
                        for i, text in enumerate(kept)
                    ],
                    num_sentences_in_document=len(sentences),
                    num_words=len(" ".join(kept).split()),
                    has_prose=any(" " in text for text in kept),
                )
            )
        return texts_pb2.SummarizeResponse(summaries=summaries, model=MODEL)


class Topics(Service):
    service = texts_pb2.DESCRIPTOR.services_by_name["TopicService"]

    """The words of a text that are neither kept nor avoided, each a topic."""

    def SuggestTopics(self, request, context):
        texts = []
        for text in request.texts:
            words = [word for word in text.split() if word not in request.avoid]
            words = words[: request.num_topics] if request.HasField("num_topics") else words
            texts.append(
                texts_pb2.TextTopics(
                    topics=[
                        texts_pb2.Topic(
                            words=[common_pb2.NearestWord(word=word, cosine=1.0)], likelihood=0.5, novelty=0.25
                        )
                        for word in words
                    ],
                    vectors=facet_array(np.ones((len(words), 4), np.float32)),
                )
            )
        return texts_pb2.SuggestTopicsResponse(texts=texts, model=MODEL)
