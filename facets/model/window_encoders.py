"""Encoders of windows of text from sentence-transformers models (extra ``backbone``), and vectors of words.

Shape suffixes: B windows, L tokens of the longest window, S sentences, P pieces of the longest sentence, D dimensions.
"""

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer as FastTokenizer
from torch import Tensor

from facets.arrays import Bools, Floats, Ints, Ints32
from facets.errors import NotFoundError
from facets.language.languages import CHARACTER
from facets.language.vectors import WordVectors
from facets.language.vocabulary import Vocabulary
from facets.model.passage_encoding import PassageEncoder, ReadWindows, WindowEncoder
from facets.model.shipped import find_model
from facets.model.word_pieces import Pieces, PieceTokenizer, encodable

_LONGEST = 1024  # most tokens of a window: attention over more takes longer than it helps
_QUERY_PROMPTS, _DOCUMENT_PROMPTS = ("query",), ("document", "passage", "corpus")
_SPACES = np.array([code for code in range(0x3001) if chr(code).isspace()], dtype=np.uint32)
# A word, at most 24 letters of it, a character of a script without spaces between words, or a mark.
_WORD = re.compile(rf"\s*(?:{CHARACTER.pattern}|(?:(?!{CHARACTER.pattern})\w){{1,24}}|[^\w\s])")
_UNSEEN = {"Cc", "Cf"}  # control and format characters
_NUM_WORDS = 3_000  # words that name facets, most frequent first
_MAX_ASKED = 20_000_000  # numbers in the vectors of asked words that are kept: 80 MB
_WORD_MARKS = "\u2581\u0120"  # begin words in the vocabularies of SentencePiece and of bytes


def _max_tokens(model: Any) -> int:
    """Most tokens of a text; networks that count positions from after the padding have fewer than they say."""
    config = model[0].auto_model.config
    own = model.max_seq_length, getattr(model[0], "document_length", None), _LONGEST
    least = min(length for length in own if length)
    if getattr(config, "pad_token_id", None) == 1 and hasattr(config, "max_position_embeddings"):  # as RoBERTa
        least = min(least, config.max_position_embeddings - 2)
    return int(least)


def prompt_of(model: Any, *, query: bool) -> str:
    """What the model's own configuration puts before queries or documents."""
    for name in _QUERY_PROMPTS if query else _DOCUMENT_PROMPTS:
        if prompt := model.prompts.get(name):
            return str(prompt)
    return str(model.prompts.get(model.default_prompt_name) or "")


def _of_prompt(pieces: Pieces, prompt: str) -> Bools:
    """Which pieces belong to a prompt: white space after it may be part of its last piece or of the next."""
    return (pieces.starts < len(prompt.rstrip())) & (pieces.ends <= len(prompt))


def _after_prompt(pieces: Pieces, text: str, prompt: str) -> Pieces:
    """The pieces after a prompt, with offsets in the text, without white space around them."""
    ids, starts, ends = pieces.ids, pieces.starts, pieces.ends
    if prompt:
        own = ~_of_prompt(pieces, prompt)
        ids, (starts, ends) = ids[own], np.maximum(np.stack([starts, ends])[:, own] - len(prompt), 0)
    characters = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    is_space = np.append(np.isin(characters, _SPACES), False)
    if is_space[starts].any() or is_space[ends - 1].any():
        places = np.arange(len(text) + 1)
        following = np.minimum.accumulate(np.where(is_space, len(text), places)[::-1])[::-1]
        before = np.maximum.accumulate(np.where(is_space[:-1], 0, places[1:]))
        ends = np.where(ends > 0, before[ends - 1], 0)
        starts = np.minimum(following[starts], ends)  # a piece of white space alone is an empty one after a word
    return Pieces(ids, starts.astype(np.int32), ends.astype(np.int32))


class TokenEncoder:
    """Encodes windows by the token states of a transformer; implements ``WindowEncoder``."""

    pads = True

    def __init__(self, model: Any) -> None:
        """``model``: a ``SentenceTransformer`` whose first module is a ``Transformer`` with a fast tokenizer."""
        transformer = model[0]
        self.network = model.eval().requires_grad_(False)
        tokenizer = transformer.tokenizer
        self._tokenizer = PieceTokenizer(FastTokenizer.from_str(tokenizer.backend_tokenizer.to_str()))
        self._padding = tokenizer.pad_token_id or 0
        self._prompts = {query: prompt_of(model, query=query) for query in (False, True)}
        self._prompt_ids = {query: self._ids_of_prompt(prompt) for query, prompt in self._prompts.items()}
        before, after = self._tokenizer.before, self._tokenizer.after
        self.num_special = len(before) + len(after) + max(map(len, self._prompt_ids.values()))
        self.longest = _max_tokens(model) - self.num_special
        self.dim = int(model.get_embedding_dimension() or 0)
        pooling = next((module for module in model if hasattr(module, "pooling_mode")), None)
        modes = () if pooling is None else np.atleast_1d(pooling.pooling_mode).tolist()
        # The state of [CLS] says nothing about a span.
        self.has_states = bool(modes) and "cls" not in modes

    def split(self, texts: Sequence[str], *, query: bool = False) -> list[Pieces]:
        """Pieces of texts as they are after the prompt."""
        prompt = self._prompts[query]
        found = self._tokenizer.encode([prompt + text for text in texts]) if prompt else self._tokenizer.encode(texts)
        return [_after_prompt(pieces, text, prompt) for pieces, text in zip(found, texts, strict=True)]

    def knows_script(self, text: str) -> bool:
        """See ``PieceTokenizer``."""
        return self._tokenizer.knows_script(text)

    @torch.inference_mode()
    def encode(self, windows: Sequence[Pieces], bounds: Sequence[Ints] | None, *, query: bool) -> ReadWindows:
        """See ``WindowEncoder``; the states of a sentence are pooled as those of a whole text."""
        features, num_before = self._features(windows, query=query)
        features = self.network[0](features)
        states_BLD = features["token_embeddings"]
        vectors_BD = self._pooled(features)
        if bounds is None or not self.has_states:
            return vectors_BD, None
        pairs = [(row, a, b) for row, own in enumerate(bounds) for a, b in pairwise((own + num_before).tolist())]
        rows_S, places_SP, is_own_SP = self._places(pairs, states_BLD.shape[1])
        of_sentences = {"token_embeddings": states_BLD[rows_S[:, None], places_SP], "attention_mask": is_own_SP.long()}
        return vectors_BD, self._pooled(of_sentences)

    def _places(self, spans: Sequence[tuple[int, int, int]], num_tokens: int) -> tuple[Tensor, Tensor, Tensor]:
        """Window ``[S]`` and tokens ``[S, P]`` of spans, and which of these are their own; of windows, starts, ends."""
        width = max(b - a for _, a, b in spans)
        rows_S, starts_S, ends_S = torch.tensor(spans, device=self.network.device).T
        places_SP = starts_S[:, None] + torch.arange(width, device=self.network.device)
        return rows_S, places_SP.clamp_max(num_tokens - 1), places_SP < ends_S[:, None]

    def _features(self, windows: Sequence[Pieces], *, query: bool) -> tuple[dict[str, Any], int]:
        """What the network reads, and the number of tokens before the text."""
        before = np.concatenate([self._tokenizer.before, self._prompt_ids[query]])
        rows = [np.concatenate([before, window.ids, self._tokenizer.after]) for window in windows]
        mask_BL = np.arange(max(map(len, rows))) < np.array([len(row) for row in rows])[:, None]
        ids_BL = np.full(mask_BL.shape, self._padding, dtype=np.int64)
        ids_BL[mask_BL] = np.concatenate(rows)
        arrays = {"input_ids": ids_BL, "attention_mask": mask_BL.astype(np.int64)}
        features = {name: torch.from_numpy(array).to(self.network.device) for name, array in arrays.items()}
        return features | {"prompt_length": len(before)}, len(before)

    def _pooled(self, features: dict[str, Any]) -> Floats:
        for module in list(self.network)[1:]:
            features = module(features)
        vectors: Tensor = features["sentence_embedding"][:, : self.dim]
        return vectors.float().cpu().numpy()

    def _ids_of_prompt(self, prompt: str) -> Ints32:
        pieces = self._tokenizer.encode([prompt + "a"])[0]
        return pieces.ids[_of_prompt(pieces, prompt)]


class TextEncoder:
    """Encodes windows as texts, for models without states of tokens, such as static ones; a ``WindowEncoder``.

    A window with more tokens than the model reads is encoded in parts, whose vectors are averaged.
    """

    has_states = False
    pads = False

    def __init__(self, model: Any) -> None:
        """``model``: any ``SentenceTransformer``."""
        self.network = model
        self._prompts = {query: prompt_of(model, query=query) for query in (False, True)}
        # A router has a module, and perhaps a length, for each task.
        lengths = [length for module in model.modules() if (length := getattr(module, "max_seq_length", None))]
        self._max_tokens = min([*lengths, math.inf])
        self.num_special = max(self._num_tokens(["a"], query=query)[0] - 1 for query in (False, True))
        self.longest = (int(min(self._max_tokens, _LONGEST)) - self.num_special) // 2  # words of two tokens fit
        self.dim = int(model.get_embedding_dimension() or 0)

    def split(self, texts: Sequence[str], *, query: bool = False) -> list[Pieces]:
        """The words of texts."""
        return [Words.of(encodable(text)) for text in texts]

    def knows_script(self, text: str) -> bool:
        """Always, as the vocabulary is not known."""
        return True

    def encode(self, windows: Sequence[Pieces], bounds: Sequence[Ints] | None, *, query: bool) -> ReadWindows:
        """Vectors of windows only."""
        texts = ["".join(window.words).strip() for window in windows if isinstance(window, Words)]
        parts = self._parts(texts, query=query)
        vectors: Floats = self.network.encode(
            [part for own in parts for part in own],
            **self._settings(query=query),
            device=str(self.network.device),
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        vectors = vectors.astype(np.float32)
        if len(vectors) == len(texts):
            return vectors, None
        shares = np.array([len(part) / sum(map(len, own)) for own in parts for part in own], dtype=np.float32)
        starts = np.cumsum([0, *map(len, parts)])[:-1]
        return np.add.reduceat(vectors * shares[:, None], starts), None

    def _parts(self, texts: Sequence[str], *, query: bool) -> list[list[str]]:
        """Each text, halved until the model reads each part to its end."""
        if math.isinf(self._max_tokens):
            return [[text] for text in texts]
        found = []
        for text, count in zip(texts, self._num_tokens(texts, query=query), strict=True):
            if count < self._max_tokens or len(text) == 1:  # one with as many may have been cut
                found.append([text])
                continue
            space = text.find(" ", len(text) // 2, -1)
            middle = space if space >= 0 else len(text) // 2
            halves = [half for half in (text[:middle].strip(), text[middle:].strip()) if half]
            found.append([part for own in self._parts(halves, query=query) for part in own])
        return found

    def _num_tokens(self, texts: Sequence[str], *, query: bool) -> list[int]:
        """Tokens that the model reads of texts, with special ones and the prompt; 1 if it does not say."""
        mask_BL = self.network.preprocess(list(texts), **self._settings(query=query)).get("attention_mask")
        return [1] * len(texts) if mask_BL is None else [int(count) for count in mask_BL.sum(dim=1)]

    def _settings(self, *, query: bool) -> dict[str, Any]:
        return {"prompt": self._prompts[query] or None, "task": "query" if query else "document"}


@dataclass(frozen=True, slots=True)
class Words(Pieces):
    """The words of one text, each with the white space before it."""

    words: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str) -> "Words":
        """The words of a text; punctuation marks count as words. None if nothing of the text can be seen."""
        is_seen = any(unicodedata.category(letter) not in _UNSEEN and not letter.isspace() for letter in text)
        found = list(_WORD.finditer(text)) if is_seen else []
        words = tuple(match.group() for match in found)
        ends = np.array([match.end() for match in found], dtype=np.int32)
        starts = ends - np.array([len(word.lstrip()) for word in words], dtype=np.int32)
        return cls(np.zeros(len(words), dtype=np.int32), starts, ends, words)

    def cut(self, part: slice) -> "Words":
        """Some of the words."""
        return Words(self.ids[part], self.starts[part], self.ends[part], self.words[part])


class LazyWords(WordVectors):
    """Vectors of words, encoded when they are first needed: of asked words, or of frequent ones to name facets."""

    def __init__(self, encoder: WindowEncoder, pieces: Mapping[str, int]) -> None:
        """``pieces``: of the tokenizer, with their ids."""
        self._encoder, self._pieces = encoder, pieces
        self._asked: dict[str, Floats] = {}

    @cached_property
    def vocabulary(self) -> Vocabulary:  # type: ignore[override]
        """Frequent words of the shipped passage model; where it is not installed, words that are single pieces."""
        try:
            known = Vocabulary.load(find_model("facets-passages-small-en") / "vocabulary.tsv").without_pieces()
        except NotFoundError:
            return _whole_words(self._pieces)
        return Vocabulary(known.words[:_NUM_WORDS], known.counts[:_NUM_WORDS], total_count=known.total_count)

    @cached_property
    def _kept(self) -> tuple[Floats, None]:  # type: ignore[override]
        return self._encoded(self.vocabulary.words), None

    def of(self, words: Sequence[str]) -> Floats:
        """Unit vectors of any words, ``[N, D]``; zero for a word without pieces."""
        found = self._asked
        new = [word for word in dict.fromkeys(words) if word not in found]
        found.update(zip(new, self._encoded(new), strict=True))
        if len(found) * self.dim > _MAX_ASKED:
            self._asked = {}  # others may still be reading the old one
        return np.array([found[word] for word in words], dtype=np.float32).reshape(-1, self.dim)

    def _encoded(self, words: Sequence[str]) -> Floats:
        vectors_ND, pieces = np.zeros((len(words), self.dim), dtype=np.float32), self._encoder.split(words)
        readable = [row for row, own in enumerate(pieces) if len(own)]
        vectors_ND[readable] = PassageEncoder(self._encoder, 1).vectors([pieces[row] for row in readable])
        return vectors_ND

    @property
    def dim(self) -> int:
        """Number of dimensions of a vector."""
        return self._encoder.dim


def _whole_words(pieces: Mapping[str, int]) -> Vocabulary:
    """Words of a tokenizer; pieces are ordered by frequency, from which follow estimated counts."""
    marked = [piece[1:] for piece in sorted(pieces, key=pieces.__getitem__) if piece[0] in _WORD_MARKS]
    names = marked or sorted(pieces, key=pieces.__getitem__)  # word pieces mark what continues a word
    words = [*dict.fromkeys(word for word in names if len(word) > 2 and word.isalpha() and word.islower())][:_NUM_WORDS]
    return Vocabulary(words, _NUM_WORDS * 100 // np.arange(10, len(words) + 10))
