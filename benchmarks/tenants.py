"""Fairness between API keys for every rpc: ``python -m benchmarks.tenants [--rpcs NAME ...]``; prints JSON.

A real server process with a file of keys and a collection. One key sends single texts and searches, one at a time:
alone, then beside many callers of another key that all call the same rpc. Then ten keys call that rpc, and each answer
counts for its key. A caller waits for each answer, and retries a refused call after the delay that the server states.
"""

import argparse
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from facets_client.core.channel import rpc_of
from facets_proto.v1 import diagnosis_pb2, documents_pb2, models_pb2, papers_pb2, relations_pb2, texts_pb2
from google.protobuf.message import Message
from numpy.typing import NDArray

from benchmarks.callers import Answers, Callers, call
from benchmarks.measuring import percentiles, print_report
from benchmarks.server import Server, serving
from facets.model.facet_model import FacetModel
from facets.model.loading import DEFAULT_MODEL, load

_NUM_TENANTS = 10
_NUM_WORDS = 8000  # in all texts
_NUM_REQUESTS = 8  # different ones of each rpc
_PASSAGES = "facets-passages-small-en"


@cache
def _words() -> NDArray[np.str_]:
    words = load(DEFAULT_MODEL, FacetModel).words.vocabulary.words
    return np.array([word for word in words if word.isalpha()][:_NUM_WORDS])


def _text(number: int, num_words: int = 12) -> str:
    return " ".join(np.random.default_rng(number).choice(_words(), num_words)).capitalize() + "."


def _texts(number: int, num: int, num_words: int = 12) -> list[str]:
    return [_text(1000 * number + place, num_words) for place in range(num)]


def _pairs(number: int, num: int, num_words: int) -> list[texts_pb2.TextPair]:
    texts = _texts(number, 2 * num, num_words)
    return [texts_pb2.TextPair(first=texts[i], second=texts[i + 1]) for i in range(0, 2 * num, 2)]


def _long(number: int) -> texts_pb2.SummaryDocument:
    return texts_pb2.SummaryDocument(text=" ".join(_texts(number, 13_000, 18))[:1_000_000])


def _papers(number: int, num: int) -> list[papers_pb2.Paper]:
    return [papers_pb2.Paper(title=text, abstract=" ".join(_texts(number, 6, 20))) for text in _texts(number, num)]


def _people(number: int, num: int, pair: str) -> list[str]:
    return [f"{pair.format('Anna Lee', 'Paul Roy')} {_text(number + place)}" for place in range(num)]


def _documents(number: int, num: int) -> list[documents_pb2.Document]:
    return [documents_pb2.Document(id=f"{number}-{i}", text=text) for i, text in enumerate(_texts(number, num, 40))]


def _search(number: int, num_queries: int = 1, *, evidence: bool = False) -> documents_pb2.SearchRequest:
    queries = [documents_pb2.SearchQuery(text=text) for text in _texts(number, num_queries, 6)]
    return documents_pb2.SearchRequest(collection="documents", queries=queries, evidence=evidence)


_REQUESTS: dict[str, Callable[[int], Message]] = {
    "embed": lambda number: texts_pb2.EmbedRequest(texts=_texts(number, 8)),
    "embed-passages": lambda number: texts_pb2.EmbedRequest(texts=_texts(number, 8, 120), model=_PASSAGES),
    "explain": lambda number: texts_pb2.ExplainRequest(texts=_texts(number, 16)),
    "score": lambda number: texts_pb2.ScoreRequest(pairs=_pairs(number, 64, 12)),
    "score-explain": lambda number: texts_pb2.ScoreRequest(pairs=_pairs(number, 4, 600), explain=True),
    "summarize": lambda number: texts_pb2.SummarizeRequest(documents=[_long(number)]),
    "suggest-topics": lambda number: texts_pb2.SuggestTopicsRequest(texts=_texts(number, 16, 60)),
    "extract-relations": lambda number: relations_pb2.ExtractRelationsRequest(
        texts=[relations_pb2.RelationText(text=text) for text in _people(number, 32, "{} is the sister of {}.")],
        entity_source=relations_pb2.ENTITY_SOURCE_GAZETTEER,
        gazetteer_names=["Anna Lee", "Paul Roy"],
    ),
    "fill-slots": lambda number: relations_pb2.FillSlotsRequest(
        texts=[relations_pb2.RelationText(text=text) for text in _people(number, 32, "{} was born in {}.")],
        entity_source=relations_pb2.ENTITY_SOURCE_GAZETTEER,
        gazetteer_names=["Anna Lee", "Paul Roy"],
        slots=[relations_pb2.Slot(head="Anna Lee", relation="sibling")],
    ),
    "score-relations": lambda number: relations_pb2.ScoreRelationsRequest(
        patterns=_people(number, 64, "$ARG1 , partner of $ARG2")
    ),
    "detect-entailment": lambda number: relations_pb2.DetectEntailmentRequest(
        pairs=[
            relations_pb2.EntailmentPair(premise=f"$ARG1 {text} $ARG2", hypothesis=f"$ARG1 {text[4:]} $ARG2")
            for text in _texts(number, 64)
        ]
    ),
    "recommend-authors": lambda number: papers_pb2.RecommendAuthorsRequest(papers=_papers(number, 32)),
    "search": lambda number: _search(number, 8, evidence=True),
    "rerank": lambda number: documents_pb2.RerankRequest(query=_text(number), texts=_texts(number, 64, 60)),
    "upsert": lambda number: documents_pb2.UpsertRequest(collection="other", documents=_documents(number, 64)),
    "upsert-long": lambda number: documents_pb2.UpsertRequest(
        collection="other", documents=[documents_pb2.Document(id=str(number), text=" ".join(_texts(number, 3000, 18)))]
    ),
    "map": lambda number: diagnosis_pb2.MapCollectionRequest(name="documents", max_documents=1000 - number),
    "diagnose": lambda number: diagnosis_pb2.DiagnoseCollectionRequest(name="documents", queries=_texts(number, 8, 6)),
    "take-backup": lambda number: models_pb2.TakeBackupRequest(),
    "reindex": lambda number: documents_pb2.ReindexCollectionRequest(name="documents"),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures and prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rpcs", nargs="+", default=list(_REQUESTS), choices=_REQUESTS, metavar="RPC", help="see code")
    parser.add_argument("--seconds", type=float, default=8.0, help="length of each phase")
    parser.add_argument("--callers", type=int, nargs="*", default=[8, 24, 96], help="callers of the other key")
    parser.add_argument("--documents", type=int, default=2000, help="in the collection")
    parser.add_argument("--no-shares", action="store_true", help="leave out the ten keys")
    options = parser.parse_args(arguments)
    keys = [f"key-of-tenant-{number}" for number in range(_NUM_TENANTS)]
    rpcs: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "keys"
        file.write_text("\n".join(keys) + "\n", encoding="ascii")
        settings = {
            "FACETS_SERVER_SECURITY_API_KEYS_FILE": str(file),
            "FACETS_SERVER_BACKUP_DIR": str(Path(directory) / "backups"),
            "FACETS_SERVER_BACKUP_KEEP": "1",
        }
        with serving(None, Path(directory) / "data", settings) as server:
            _fill(server, keys[0], options.documents)
            embed = _tenant(keys[0], 1, lambda number: texts_pb2.EmbedRequest(texts=_texts(number, 1)))
            victims = [embed, _tenant(keys[0], 1, _search)]
            alone = _victims(call(server.target, [victims], options.seconds))
            for name in options.rpcs:
                figures: dict[str, object] = {}
                for callers in options.callers:
                    groups = [victims, [_tenant(keys[1], callers, _REQUESTS[name])]]
                    *waits, other = call(server.target, groups, options.seconds)
                    figures[f"beside_{callers}"] = {**_victims(waits), "other_key": _summary(other, options.seconds)}
                if not options.no_shares:
                    tenants = [_tenant(key, 2 + 3 * (place % 2), _REQUESTS[name]) for place, key in enumerate(keys)]
                    counts = [len(answers.latencies_ms) for answers in call(server.target, [tenants], options.seconds)]
                    mean = sum(counts) / len(counts)
                    figures["shares_of_ten"] = [round(count / mean, 2) for count in counts] if mean else None
                rpcs[name] = figures
    print_report({"benchmark": "tenants", "parameters": vars(options), "alone": alone, "rpcs": rpcs})


def _fill(server: Server, key: str, num_documents: int) -> None:
    requests: list[Message] = [documents_pb2.CreateCollectionRequest(name=name) for name in ("documents", "other")]
    requests += [
        documents_pb2.UpsertRequest(collection="documents", documents=_documents(number, 250))
        for number in range(1, 1 + max(1, num_documents // 250))
    ]
    for request in requests:
        send = server.channel.unary_unary(rpc_of(type(request)).path)
        send(request.SerializeToString(), metadata=[("authorization", f"Bearer {key}")], timeout=600)


def _tenant(key: str, callers: int, make: Callable[[int], Message]) -> Callers:
    requests = [make(number) for number in range(_NUM_REQUESTS)]
    path = rpc_of(type(requests[0])).path
    return Callers(path, [request.SerializeToString() for request in requests], callers, key)


def _victims(waits: Sequence[Answers]) -> dict[str, object]:
    names = ("single_ms", "search_ms")
    return {name: _summary(answers) for name, answers in zip(names, waits, strict=True)}


def _summary(answers: Answers, seconds: float | None = None) -> dict[str, object]:
    rate = {} if seconds is None else {"answers_per_s": round(len(answers.latencies_ms) / seconds, 2)}
    failed = {"failed": dict(answers.failed)} if answers.failed else {}
    return {**percentiles(answers.latencies_ms, (50, 99)), **rate, **failed}


if __name__ == "__main__":
    main()
