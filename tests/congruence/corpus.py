"""Documents that are as odd as documents may be, and what a hit says, to the bit."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from facets.documents import Document, DocumentPart, SearchHit, SearchResult
from facets.documents.types import TokenStats

K, DIM, NUM = 3, 32, 400
WORDS = "goat market river stone letter winter bridge answer copper garden signal harbour".split()
_CENTERS = np.random.default_rng(7).standard_normal((16, DIM))


def facets_of(seed: int, num: int = K) -> NDArray[np.float32]:
    """``[num, DIM]``: near one of sixteen centres, with magnitudes."""
    rng = np.random.default_rng(seed)
    found = _CENTERS[rng.integers(0, len(_CENTERS), num)] + 0.5 * rng.standard_normal((num, DIM))
    return (found * rng.uniform(0.1, 9.0, (num, 1))).astype(np.float32)


def text_of(seed: int, num: int = 6) -> str:
    return " ".join(np.random.default_rng(seed).choice(WORDS, num)) + "."


def payload_of(number: int) -> dict[str, Any]:
    """Every kind of value, some under the same name as another kind elsewhere."""
    kinds: list[Any] = [number, float(number), str(number), None, number % 2 == 0, [number, "x", None], {"a": number}]
    payload: dict[str, Any] = {
        "number": number,
        "half": number / 2,
        "mixed": kinds[number % len(kinds)],
        "title": text_of(1000 + number, 2),
        "author": {"name": f"a{number % 5}", "born": 1900 + number % 90},
        "tags": [f"t{number % 4}", number % 3, None, True, [number], {"deep": 1}],
        "date": f"20{number % 30:02}-0{1 + number % 9}-11",
        "e\u00e9 f": "\u00e9\U0001f410" if number % 2 else "z\u0001",
    }
    odd: dict[int, dict[str, Any]] = {
        1: {"big": 2**60, "odd": "odd\u0001inside", "huge": 1e300},
        2: {"big": float(2**60), "odd": "ends", "huge": 10**18},
        3: {"big": 2**60 + 1, "odd": "nul\u0001", "huge": -1e300},
        4: {"big": -0.0, "odd": "back\\u0000slash", "huge": 1e-300},
        5: {"big": 9007199254740993, "odd": '"\\\u0001\u0001', "huge": 1e23},
        6: {"big": 9007199254740992.0, "odd": "", "huge": -(10**17)},
    }
    return payload | odd.get(number % 11, {})


def make_corpus() -> list[Document]:
    """Documents of one part and of several, of K facets and of more, of zero facets, and equal ones."""
    return [_document(number) for number in range(NUM)]


def _document(number: int) -> Document:
    id, text, payload = f"d{number * 7919 % NUM:04}\u00e9{number}", text_of(number), payload_of(number)
    if number % 9 == 4:  # several parts under headings
        return _book(id, number, payload)
    facets = facets_of(number, K + number % 4 if number % 5 == 0 else K)
    if number % 10 == 3:
        facets[1:] = 0  # one facet says all
    if number % 50 == 7:
        facets[:] = 0  # nothing does
    if number % 8 == 5:
        facets, text = facets_of(5), text_of(5)  # as others are
    if number % 13 == 0:
        text = f"{text}\n\nA nul \0 and a \U0001f410."
    spans = np.array([[place, place + 4] for place in range(len(facets))])
    document = Document(id=id, text=text, payload=payload, facet_embeddings=facets, facet_spans=spans)
    return replace(
        document, token_stats=TokenStats(8, 9), source=f"folder/\u00e9{number % 5}.txt" if number % 3 else ""
    )


def _book(id: str, number: int, payload: dict[str, Any]) -> Document:
    texts = [f"{text_of(100 * number + place, 5)} " for place in range(2 + number % 3)]
    ends = np.cumsum([len(text) for text in texts]).tolist()
    counts = [K + place % 2 * 2 for place in range(len(texts))]
    starts = [0, *ends[:-1]]
    spans = np.concatenate([[[start, start + 4]] * count for start, count in zip(starts, counts, strict=True)])
    return Document(
        id=id,
        text="".join(texts),
        payload=payload,
        facet_embeddings=np.concatenate([facets_of(100 * number + p, c) for p, c in enumerate(counts)]),
        facet_spans=spans,
        parts=[
            DocumentPart(start=start, end=end, headings=("Book \0", text_of(number + place, 1)), page=place + 1)
            for place, (start, end) in enumerate(zip(starts, ends, strict=True))
        ],
        part_facets=counts,
    )


def hit_said(hit: SearchHit) -> tuple[object, ...]:
    """Everything that a hit says, arrays as bytes."""
    met = [
        (m.first_facet, m.second_facet, m.cosine, m.contribution, m.second_span, m.facet.tobytes())
        for m in hit.evidence
    ]
    values = (hit.id, hit.score, hit.text, repr(hit.payload), hit.facets_score, hit.lexical_score, hit.matched_words)
    return (*values, hit.answer, hit.confidence, dict(hit.signals), hit.revision, hit.part, hit.part_number, met)


def said(result: SearchResult) -> list[list[tuple[object, ...]]]:
    return [[hit_said(hit) for hit in page] for page in result.hits]


def overlap(expected: SearchResult, found: SearchResult) -> float:
    """Share of the documents of the expected pages that are on the found ones."""
    pairs = list(zip(_ids(expected), _ids(found), strict=True))
    wanted = sum(len(one) for one, _ in pairs)
    return sum(len(one & other) for one, other in pairs) / wanted if wanted else 1.0


def _ids(result: SearchResult) -> Sequence[set[str]]:
    return [{hit.id for hit in page} for page in result.hits]
