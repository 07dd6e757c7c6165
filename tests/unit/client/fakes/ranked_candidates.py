"""Replies about papers and candidates, with scores made of hashes."""

import zlib

AUTHORS = ("Ann", "Bob", "Cat", "Dee", "Eve")
_NEAR = {"id": "p1", "title": "About [bold]boats\x1b[31m", "cosine": 0.5}
EVIDENCE = {"facet": 2, "nearest_words": [{"word": "boat"}], "nearest_papers": [_NEAR]}


def fake_score(title, candidate):
    """Of a paper and a candidate, always the same."""
    return zlib.crc32(f"{title}|{candidate}".encode()) / 2**32


def _scored(paper, options):
    left = {*AUTHORS} - {*options.excluded_ids} - {*paper.excluded_ids}
    left &= {*options.candidates.ids} if options.HasField("candidates") else left
    scored = {name: fake_score(paper.title, name) for name in left}
    return sorted(scored.items(), key=lambda item: -item[1])[: options.top_k or 10]


def _recommended(request):
    evidence = {"evidence": EVIDENCE, "facet_score": 0.25, "document_score": 0.75} if request.options.evidence else {}
    results = [
        {"candidates": [{"id": name, "score": score, **evidence} for name, score in _scored(paper, request.options)]}
        for paper in request.papers
    ]
    return {"results": results, "model": {"name": "papers"}}


def _bulk(request):
    results = []
    for paper in request.papers:
        scored = _scored(paper, request.options)
        candidates = [AUTHORS.index(name) for name, _ in scored]
        results.append({"candidates": candidates, "scores": [score for _, score in scored]})
    unknown = [name for name in request.options.candidates.ids if name not in AUTHORS]
    known = {"candidate_ids": AUTHORS, "num_unknown_candidates": len(unknown)}
    return {"results": results, "unknown_candidates": unknown, **known}


def _ranked(request):
    papers = [
        {"title": paper.title, "position": place, "score": fake_score(paper.title, request.ids[0])}
        for place, paper in enumerate(request.papers.papers)
    ]
    papers = sorted(papers, key=lambda paper: -paper["score"])[: request.top_k or 10]
    return {"rankings": [{"papers": papers}] * len(request.ids)}


RANKING = {
    **{"RecommendAuthors": _recommended, "RecommendCitations": _recommended},
    **{"RecommendBulk": _bulk, "RankPapers": _ranked},
}
