import gzip
import lzma
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from facets_lab.training.corpus import PackedCorpus, clean_paragraph, read_titled_documents
from toy_texts import packed_corpus

from facets.errors import CheckpointError, ConfigError

FIRST = """# Cats
The cat sat on the mat. The cat slept there.
Dogs chase the cat<br>in the [[garden]].

# Empty

# Numbers
1 2 3 4 5 6 7 = 8 9.
No.
The dog of Dr. Lee ran away.
"""
SECOND = "Another text has no title. It is short &amp; sweet.\n\nHere is one more document.\n"
SENTENCES = [  # documents, paragraphs, sentences
    [["the cat sat on the mat .", "the cat slept there ."], ["dogs chase the cat in the garden ."]],
    [["the dog of dr. lee ran away ."]],
    [["another text has no title .", "it is short & sweet ."]],
    [["here is one more document ."]],
]


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    first, second = tmp_path / "a.txt.xz", tmp_path / "b.txt.gz"
    first.write_bytes(lzma.compress(FIRST.encode()))
    second.write_bytes(gzip.compress(SECOND.encode()))
    return [first, second]


@pytest.fixture
def packed(files: list[Path], tmp_path: Path) -> PackedCorpus:
    return packed_corpus(files, tmp_path / "packed")


def spans(offsets: np.ndarray) -> list[range]:
    return [range(start, end) for start, end in pairwise(offsets)]


def test_packed_corpus_holds_the_text_in_order(packed: PackedCorpus) -> None:
    words = packed.vocabulary.words
    sentences = [" ".join(words[row] for row in packed.sentence(i)) for i in range(packed.num_sentences)]
    assert sentences == [s for document in SENTENCES for paragraph in document for s in paragraph]
    paragraphs = [[sentences[i] for i in span] for span in spans(packed.paragraph_offsets)]
    assert paragraphs == [paragraph for document in SENTENCES for paragraph in document]
    documents = [[sentences[i] for i in span] for span in spans(packed.document_offsets)]
    assert documents == [[s for paragraph in document for s in paragraph] for document in SENTENCES]
    counts = Counter(word for sentence in sentences for word in sentence.split())
    assert dict(zip(words, packed.vocabulary.counts.tolist(), strict=True)) == counts
    assert list(words) == sorted(words, key=lambda word: (-counts[word], word))


def test_rare_words_become_unknown(files: list[Path], tmp_path: Path) -> None:
    packed = packed_corpus(files, tmp_path / "p", min_count=2, max_words=4)
    assert packed.vocabulary.words == (".", "the", "cat", "is")
    assert [packed.vocabulary.words[row] if row < 4 else "?" for row in packed.sentence(1)] == [
        "the", "cat", "?", "?", ".",
    ]  # fmt: skip
    assert packed.vocabulary.total_count == len(packed.tokens)


def test_number_of_workers_and_blocks_changes_nothing(
    files: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = packed_corpus(files, tmp_path / "one")
    monkeypatch.setattr("facets_lab.training.corpus.BLOCK_CHARS", 10)  # a document a block
    two = packed_corpus(files, tmp_path / "two", workers=2)
    for name in ("tokens", "sentence_offsets", "paragraph_offsets", "document_offsets"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert one.vocabulary.words == two.vocabulary.words


def test_bad_settings_and_empty_corpora_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.txt"
    path.write_text("# Title\n1 2 3\n")
    with pytest.raises(ConfigError, match="got none in 1 files"):
        packed_corpus([path], tmp_path / "p")
    with pytest.raises(ConfigError, match="min_count must leave a word"):
        path.write_text("Three good words.\n")
        packed_corpus([path], tmp_path / "p", min_count=9)
    with pytest.raises(ConfigError, match="cannot read"):
        list(read_titled_documents(tmp_path / "missing.txt"))


@pytest.mark.parametrize("name", ["offsets.npz", "tokens.npy"])
def test_damaged_and_missing_parts_are_refused(packed: PackedCorpus, name: str) -> None:
    path = packed.path / name
    path.write_bytes(path.read_bytes()[:-90])
    with pytest.raises(CheckpointError, match="expected"):
        PackedCorpus.open(packed.path)
    path.unlink()
    with pytest.raises(CheckpointError, match=name):
        PackedCorpus.open(packed.path)
    with pytest.raises(ConfigError, match="nowhere"):
        PackedCorpus.open(packed.path / "nowhere")


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("see [[this]] {{cite web|x=1}} and that", "see this and that"),
        ("x < 3 and y > 4", "x < 3 and y > 4"),
        ("where formula_12 is codice_3", "where is"),
        ("'''bold''' it's", "bold it's"),
        ("a\u00a0b\t c &lt;3 &nbsp;d", "a b c <3 d"),
        ("", ""),
    ],
)
def test_markup_crumbs_are_removed(text: str, cleaned: str) -> None:
    assert clean_paragraph(text) == cleaned
