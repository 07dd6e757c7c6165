"""Reranking 100 candidates: ``python -m benchmarks.reranking FOLDER... [--queries 40] [--model NAME]``; JSON.

A folder is in BEIR layout. The candidates of a query are the 100 best of its documents by bm25s; each system puts them
in order: ours as the rpc ``Rerank`` does, in every mode, bm25s as it found them, sentence-transformers' MiniLM by its
cosine. nDCG@10, and right first, over queries whose candidates hold a relevant one, and what one call of ours takes.
"""

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from facets_lab.documents.beir import RetrievalData, limit_queries, query_metrics, read_beir
from facets_lab.documents.systems import Bm25Scorer, best_rows, load_searched

from benchmarks.measuring import minilm, percentiles, print_report
from facets.documents import Document, SearchMode, SearchRequest, check_search, rerank
from facets.model.passage_model import PassageModel

_CANDIDATES = 100
_MODES: tuple[SearchMode, ...] = ("hybrid", "facets", "lexical")
_BATCH = 64


def main(arguments: Sequence[str] | None = None) -> None:
    """Parses the flags, measures, writes JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--queries", type=int, default=40, help="of each folder")
    parser.add_argument("--model", help="shipped model or checkpoint folder (default: the one of collections)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    model = load_searched(options.model)
    if not isinstance(model, PassageModel):
        parser.error(f"{model.name} is no model of passages")
    found = {
        folder.name: measured(model, limit_queries(read_beir(folder), options.queries, seed=options.seed))
        for folder in options.folders
    }
    print_report({"benchmark": "reranking", "model": model.name, "revision": model.revision, "folders": found})


def measured(model: PassageModel, data: RetrievalData) -> dict[str, object]:
    """Figures of every system."""
    scores_QN = Bm25Scorer(data.documents, data.queries).scores(slice(None))
    candidates = [best_rows(scores_N, _CANDIDATES).tolist() for scores_N in scores_QN]
    kept = [
        place
        for place, key in enumerate(data.query_ids)
        if any(data.judgements[key].get(data.document_ids[row], 0) > 0 for row in candidates[place])
    ]
    rows = sorted({row for place in kept for row in candidates[place]})
    documents = _documents(model, {row: data.documents[row] for row in rows})
    encode = minilm()
    vectors = dict(zip(rows, np.asarray(encode([data.documents[row] for row in rows])), strict=True))
    asked = np.asarray(encode(data.queries))
    rankings: dict[str, list[list[int]]] = {"bm25s": [], "minilm": [], **{mode: [] for mode in _MODES}}
    times_ms: list[float] = []
    for place in kept:
        own = candidates[place]
        rankings["bm25s"].append(own)
        cosines = np.array([vectors[row] @ asked[place] for row in own])
        rankings["minilm"].append([own[at] for at in np.argsort(-cosines, kind="stable")])
        for mode in _MODES:
            start = time.perf_counter()
            order = _reranked(model, data.queries[place], [documents[row] for row in own], mode)
            times_ms += [1000 * (time.perf_counter() - start)] if mode == "hybrid" else []
            rankings[mode].append([own[at] for at in order])
    judgements = [data.judgements[data.query_ids[place]] for place in kept]
    return {
        "queries": len(kept),
        "systems": {name: _figures(found, data, judgements) for name, found in rankings.items()},
        "hybrid_without_encoding_of_texts": percentiles(times_ms, (50, 90), unit="_ms"),
    }


def _documents(model: PassageModel, texts: Mapping[int, str]) -> dict[int, Document]:
    made: dict[int, Document] = {}
    rows = list(texts)
    for start in range(0, len(rows), _BATCH):
        batch = rows[start : start + _BATCH]
        encoded = model.encode_passages([texts[row] for row in batch])
        for place, row in enumerate(batch):
            facets, spans = encoded.document(place)
            made[row] = Document(id=str(row), text=texts[row], facet_embeddings=facets, facet_spans=spans)
    return made


def _reranked(model: PassageModel, query: str, documents: Sequence[Document], mode: SearchMode) -> list[int]:
    queries = model.encode_queries([query])
    request = SearchRequest(
        facets=queries.facets, weights=queries.weights, texts=[query], mode=mode, top_k=len(documents)
    )
    search = check_search(request, dim=model.dim, curve=None)
    return [one.index for one in rerank(documents, search, space=model.space)]


def _figures(
    rankings: Sequence[Sequence[int]], data: RetrievalData, judgements: Sequence[Mapping[str, int]]
) -> dict[str, float]:
    named = [[data.document_ids[row] for row in ranking] for ranking in rankings]
    first = [judged.get(ranking[0], 0) > 0 for ranking, judged in zip(named, judgements, strict=True) if ranking]
    metrics = query_metrics(named, judgements)
    name = next(iter(metrics))
    return {name: round(100 * float(metrics[name].mean()), 1), "right_first": round(float(np.mean(first)), 3)}


if __name__ == "__main__":
    main()
