"""Splits texts into the pieces of a tokenizer: ids for the encoder, and the characters of each piece."""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from tokenizers import Encoding, Tokenizer

from facets.arrays import Ints32
from facets.errors import InvalidInputError
from facets.language.tokenizer import check_sequence, grouped

# The tokenizers library uses much memory per piece, so long texts are cut into parts and few parts are tokenized at
# once.
_PART_CHARS = 20_000
_BATCH_CHARS = 1_000_000
_Part: TypeAlias = tuple[int, int, str]  # index of the text, offset in it, part
_BYTES = ("\u0120", "<0x20>")  # names of the space in vocabularies with a piece for each byte
# A script is known if so many pieces belong to it, or this share of a small vocabulary. BERT's English vocabulary has 8
# pieces of several Cyrillic letters and 488 Chinese characters; vocabularies of many languages have thousands.
_LEAST_PIECES, _LEAST_CHINESE = (50, 0.004), (2000, 0.03)
_SPACE = re.compile(r"\s")
# UTF-16 surrogates, which UTF-8 cannot encode.
_SURROGATE = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\ufffd"


@dataclass(frozen=True, slots=True)
class Pieces:
    """The pieces of one text, without special pieces."""

    ids: Ints32  # `[L]` int32
    starts: Ints32  # offset of the first character of each piece in the text, `[L]` int32
    ends: Ints32  # offset after its last character, `[L]` int32

    def __len__(self) -> int:
        return len(self.ids)

    def cut(self, part: slice) -> "Pieces":
        """Some of the pieces."""
        return Pieces(self.ids[part], self.starts[part], self.ends[part])


class PieceTokenizer:
    """A tokenizer of the ``tokenizers`` library; may be shared by threads."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Wraps a tokenizer and turns its truncation and padding off."""
        tokenizer.no_padding()
        tokenizer.no_truncation()
        self._tokenizer = tokenizer
        sample = tokenizer.encode("a")
        is_piece = ~np.array(sample.special_tokens_mask, dtype=np.bool_)
        self.before = _ids(sample)[: int(is_piece.argmax())]  # ids of the special pieces before a text, such as [CLS]
        self.after = _ids(sample)[len(is_piece) - int(is_piece[::-1].argmax()) :]  # and after it, such as [SEP]

    def __len__(self) -> int:
        """Number of pieces V, special ones included."""
        return int(self._tokenizer.get_vocab_size())

    def knows_script(self, text: str) -> bool:
        """Whether the vocabulary has words, not only letters, of the script that most letters of a text are in.

        Always for a text without letters, and if pieces are made of bytes: such a vocabulary does not say which scripts
        its model has read.
        """
        if any(self._tokenizer.token_to_id(name) is not None for name in _BYTES):
            return True
        scripts = Counter(map(_script_of, filter(str.isalpha, text)))
        if not scripts:  # such as "10\u00b2", whose words have no letter
            return True
        [(script, _)] = scripts.most_common(1)
        least, share = _LEAST_CHINESE if script == "CJK" else _LEAST_PIECES
        return self._num_pieces[script] >= min(least, share * len(self))

    @cached_property
    def _num_pieces(self) -> Counter[str]:
        """Number of pieces of several letters, or of Chinese characters, by script."""
        names = (name for name in self._tokenizer.get_vocab() if not name.isascii())
        scripts = (Counter(map(_script_of, filter(str.isalpha, name))) for name in names)
        return Counter(script for own in scripts for script, count in own.items() if count > 1 or script == "CJK")

    def encode(self, texts: Sequence[str]) -> list[Pieces]:
        """All pieces of each text with their offsets, which count characters (code points) of the text."""
        check_sequence(texts, "encode")
        found: list[list[Pieces]] = [[] for _ in texts]
        for (text, start, _), encoding in self._encodings(texts, self._tokenizer.encode_batch):
            offsets_L2 = np.array(encoding.offsets, dtype=np.int32).reshape(-1, 2) + np.int32(start)
            found[text].append(Pieces(_ids(encoding), offsets_L2[:, 0], offsets_L2[:, 1]))
        return [
            parts[0] if len(parts) == 1 else Pieces(*map(np.concatenate, zip(*map(astuple, parts), strict=True)))
            for parts in found
        ]

    def ids(self, texts: Sequence[str]) -> list[Ints32]:
        """The ids of ``encode``, computed faster."""
        check_sequence(texts, "ids")
        found: list[list[Ints32]] = [[] for _ in texts]
        for (text, *_), encoding in self._encodings(texts, self._tokenizer.encode_batch_fast):
            found[text].append(_ids(encoding))
        return [ids[0] if len(ids) == 1 else np.concatenate(ids) for ids in found]

    def _encodings(
        self, texts: Sequence[str], encode: Callable[..., list[Encoding]]
    ) -> Iterator[tuple[_Part, Encoding]]:
        all_parts = (part for position, text in enumerate(texts) for part in _parts(position, text))
        for parts in grouped(all_parts, _BATCH_CHARS, size=lambda part: len(part[2])):
            yield from zip(parts, encode([part for _, _, part in parts], add_special_tokens=False), strict=True)


class WordPieces(PieceTokenizer):
    """A word-piece tokenizer, such as BERT's, loaded from ``tokenizer.json``."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Wraps a tokenizer; raises InvalidInputError if it lacks a special piece."""
        super().__init__(tokenizer)
        self.first_id, self.last_id = map(self._id_of, ("[CLS]", "[SEP]"))
        self.before, self.after = np.array([[self.first_id], [self.last_id]], dtype=np.int32)

    @classmethod
    def from_json(cls, content: bytes) -> "WordPieces":
        """Reads ``tokenizer.json``; raises InvalidInputError if it is damaged or not a word-piece tokenizer."""
        try:
            tokenizer = Tokenizer.from_str(content.decode("utf-8"))
        except Exception as error:  # the library raises nothing more specific
            raise InvalidInputError(f"expected a tokenizer: {error}") from error
        return cls(tokenizer)

    def to_json(self) -> bytes:
        """The content of ``tokenizer.json``."""
        return json.dumps(json.loads(self._tokenizer.to_str()), ensure_ascii=False, separators=(",", ":")).encode()

    def _id_of(self, piece: str) -> int:
        found = self._tokenizer.token_to_id(piece)
        if found is None:
            raise InvalidInputError(f"expected a tokenizer of word pieces, {piece} is missing")
        return int(found)


def _script_of(letter: str) -> str:
    """First word of the name of a letter in Unicode, such as CYRILLIC."""
    return unicodedata.name(letter, "").partition(" ")[0]


def _ids(encoding: Encoding) -> Ints32:
    return np.array(encoding.ids, dtype=np.int32)


def encodable(text: str) -> str:
    """The text with replacement characters in place of surrogates."""
    return _SURROGATE.sub(_REPLACEMENT, text)


def _parts(position: int, text: str) -> Iterator[_Part]:
    """The parts of a text: cut at white space, or anywhere in a long stretch without any."""
    start = 0
    while start == 0 or start < len(text):
        end = min(len(text), start + _PART_CHARS)
        if end < len(text):
            space = _SPACE.search(text, end, end + _PART_CHARS)
            end = space.start() if space else end
        yield position, start, encodable(text[start:end])
        if end == 0:
            return
        start = end
