"""Fits the weights of ``facets.texts.importance`` to files whose good summary sentences are marked, news and papers.

``python -m facets_lab.texts.importance bbc-dev.jsonl.xz scitldr-dev.jsonl.xz`` prints them.
Shape suffixes: S sentences, F features, A sentences of all documents.
"""

import lzma
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from facets.arrays import Doubles
from facets.language.sentences import Sentence, sentences_of
from facets.model.loading import load
from facets.texts.coverage import coverages_of
from facets.texts.importance import features
from facets_lab.texts.summaries import read_summaries, rouge_scores

_FILES = Path(__file__).with_name("marked_files.txt.xz")
_MARK = re.compile(r"\[\[([AB])\]\]")
_MARKED_SHARE = 8  # weight of all marked files, relative to that of one file of documents with references
_WORTH = {"A": 1.0, "B": 0.5}  # must be in the summary, may be


@dataclass(frozen=True, slots=True)
class MarkedFile:
    """A file with marks where good summary sentences begin."""

    group: int  # files of one writer
    text: str
    marks: tuple[tuple[int, float], ...]  # offset and worth

    def worth(self, sentences: Sequence[Sentence]) -> Doubles:
        """The worth of each sentence of the text, ``[S]``."""
        return np.array(
            [max([w for at, w in self.marks if one.start <= at < one.end], default=0.0) for one in sentences]
        )


def marked_files() -> Iterator[MarkedFile]:
    """The files; each begins with ``=== group | kind``."""
    for part in re.split(r"(?m)^=== ", lzma.open(_FILES, "rt", encoding="utf-8").read())[1:]:
        head, _, marked = part.partition("\n")
        text, marks = "", list[tuple[int, float]]()
        for piece, mark in zip(*[iter([*_MARK.split(marked), ""])] * 2, strict=True):
            text += piece
            marks += [(len(text), _WORTH[mark])] if mark else []
        yield MarkedFile(int(head.split(" | ")[0]), text, tuple(marks))


def fitted(documents: Sequence[Sequence[Sentence]], worth: Sequence[Doubles], weights: Sequence[float]) -> Doubles:
    """Weights of the features, ``[F]``, relative to that of the log of the gain (eq. 3.7).

    ``worth``: probability that each sentence is picked. ``weights``: of the documents.
    """
    model = load()
    columns = []
    for sentences, covered in zip(documents, coverages_of(model, documents, query="", encoder=model), strict=True):
        gains_S = (covered.covered @ covered.weights).double().numpy()
        columns.append(np.column_stack([features(sentences), np.log(gains_S + 1e-4 * gains_S.max() + 1e-12)]))
        columns[-1][:, -1] -= np.log(gains_S.mean() + 1e-12)
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


def main(*paths: str) -> None:
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
    sys.stdout.write(f"{fitted(documents, worth, weights).round(2).tolist()}\n")


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
