"""The words of a collection, which name the facets of an encoder in the collection's own language."""

from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from facets.documents.records import CollectionRecord
from facets.documents.view import StoreView
from facets.language.interruption import check_interrupted
from facets.language.languages import DEFAULT_LANGUAGE, language_of
from facets.language.terms import located_terms
from facets.language.vocabulary import Vocabulary

_MAX_DOCUMENTS, _MAX_CHARS = 2_000, 4_000_000  # of a random sample
_MAX_TEXT_CHARS = 20_000  # of a document
_DOCUMENTS_AT_A_TIME = 16
_MAX_WORDS = 3_000
_SHORTEST = 2  # characters; a pair of Chinese characters is a word
_SEED = 1


def collection_vocabulary(view: StoreView, record: CollectionRecord) -> tuple[Vocabulary, NDArray[np.int64]]:
    """The words in most documents of a sample, most frequent first, each in its most frequent form; no stop words.

    Also returns the first rows of the documents of the sample.
    """
    rows = np.random.default_rng(_SEED).permutation(view.document_rows(record).firsts)[:_MAX_DOCUMENTS]
    language = language_of(record.language or DEFAULT_LANGUAGE)
    forms: defaultdict[str, Counter[str]] = defaultdict(Counter)  # by stem
    for text in _texts(view, rows):
        check_interrupted()
        located = located_terms(text, language=language.code)
        for term, form in {term: text[start:end] for term, start, end in located}.items():
            if len(form) >= _SHORTEST and not form.isnumeric() and language.fold(form) not in language.stop_words:
                forms[term][form] += 1
    counts = Counter({term: own.total() for term, own in forms.items()}).most_common(_MAX_WORDS)
    words = {forms[term].most_common(1)[0][0]: count for term, count in counts}
    return Vocabulary([*words], np.array([*words.values()], dtype=np.int64)), rows


def _texts(view: StoreView, rows: NDArray[np.int64]) -> Iterator[str]:
    num_chars = 0
    for start in range(0, len(rows), _DOCUMENTS_AT_A_TIME):
        for document in view.documents(np.sort(rows[start : start + _DOCUMENTS_AT_A_TIME])).values():
            yield document.text[:_MAX_TEXT_CHARS]
            num_chars += min(len(document.text), _MAX_TEXT_CHARS)
        if num_chars >= _MAX_CHARS:
            return
