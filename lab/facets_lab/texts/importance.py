"""Fits the weights of ``facets.texts.importance`` to marked files, news and papers.

``python -m facets_lab.texts.importance facets-reader-en bbc-dev.jsonl.xz scitldr-dev.jsonl.xz`` prints those without a
reader, and those beside it, fitted to files that it did not learn from; the last is its own. That of boilerplate is set
by hand.
Shape suffixes: S sentences, F features, A sentences of all documents.
"""

import sys
from collections.abc import Sequence
from itertools import compress
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from facets.arrays import Doubles
from facets.language.sentences import Sentence, sentences_of
from facets.model.answer_reader import AnswerReader
from facets.model.loading import load
from facets.texts.coverage import coverages_of
from facets.texts.importance import FEWEST_NOTES, QUESTION, features, said_of
from facets_lab.texts.marked_files import HELD_OUT, marked_files
from facets_lab.texts.summaries import read_summaries, rouge_scores

_MARKED_SHARE = 8  # weight of all marked files, relative to that of one file of documents with references


def columns_of(documents: Sequence[Sequence[Sentence]], reader: AnswerReader) -> list[Doubles]:
    """What the layout says, the reader by the share of notes (0 in prose), and the log of the gain, ``[S, F]``."""
    model, found = load(), list[Doubles]()
    for sentences, covered in zip(documents, coverages_of(model, documents, query="", encoder=model), strict=True):
        texts = said_of(sentences)
        features_SF, share_of_notes = features(sentences, texts)
        gains_S = (covered.covered @ covered.weights).double().numpy()
        gain_S = np.log((gains_S + 1e-4 * gains_S.max()) / gains_S.mean())
        is_read = share_of_notes >= FEWEST_NOTES
        read_S = share_of_notes * reader.read_whole(QUESTION, texts[0], texts) if is_read else np.zeros(len(texts))
        found.append(np.column_stack([features_SF, read_S, gain_S]))
    return found


def fitted(columns: Sequence[Doubles], worth: Sequence[Doubles], weights: Sequence[float]) -> Doubles:
    """Weights of the columns, ``[F]``, relative to that of the last one.

    ``worth``: probability that each sentence is picked. ``weights``: of the documents.
    """
    columns_AF, worth_A = np.concatenate(columns), np.concatenate(worth)
    scales_F = columns_AF.std(axis=0) + 1e-6
    share_A = np.concatenate([np.full(len(own), weight / len(own)) for own, weight in zip(worth, weights, strict=True)])
    share_A /= share_A.mean()
    regression = LogisticRegression(C=0.3, max_iter=1_000).fit(
        np.tile((columns_AF - columns_AF.mean(axis=0)) / scales_F, (2, 1)),
        np.repeat([1, 0], len(worth_A)),
        sample_weight=np.concatenate([share_A * worth_A, share_A * (1 - worth_A)]),
    )
    found_F: Doubles = regression.coef_[0] / scales_F
    return found_F[:-1] / found_F[-1]


def main(reader: str, *paths: str) -> None:
    """Prints the weights fitted to the marked files and to files of documents with references."""
    files = list(marked_files())
    documents = [sentences_of(file.text) for file in files]
    worth = [file.worth(own) for file, own in zip(files, documents, strict=True)]
    weights = [_MARKED_SHARE / len(files)] * len(files)
    for path in paths:
        texts, references = read_summaries(Path(path))
        for given, reference in zip(texts, references, strict=True):
            documents.append([Sentence(text, 0, len(text), text) for text in given])
            worth.append(_referenced(given, reference))
        weights += [1 / len(texts)] * len(texts)
    columns = columns_of(documents, AnswerReader.shared(reader))
    alone = [(np.delete(own, -2, axis=1), *others) for own, *others in zip(columns, worth, weights, strict=True)]
    is_fitted = [bool(own[:, -2].any()) for own in columns]  # where the reader says something
    is_fitted[: len(files)] = [file.group in HELD_OUT for file in files]
    beside = list(compress(zip(columns, worth, weights, strict=True), is_fitted))
    for chosen in (alone, beside):
        sys.stdout.write(f"{fitted(*zip(*chosen, strict=True)).round(2).tolist()}\n")


def _referenced(sentences: Sequence[str], references: Sequence[str]) -> Doubles:
    """1 for the sentences that a reference contains; if there are none, for the one with the highest ROUGE-1."""
    is_in = [
        any(" ".join(text.split()) in " ".join(reference.split()) for reference in references) for text in sentences
    ]
    if any(is_in):
        return np.array(is_in, dtype=np.float64)
    scores_S = rouge_scores(sentences, [references] * len(sentences))["rouge1"]
    return np.asarray(scores_S == scores_S.max(), dtype=np.float64)


if __name__ == "__main__":
    main(*sys.argv[1:])
