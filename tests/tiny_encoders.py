"""Tiny, seeded sentence-transformers folders of every kind that a user may bring, with random weights; no network."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file
from sentence_transformers import MultiVectorEncoder, SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask
from sentence_transformers.sentence_transformer.modules import LayerNorm, Pooling, StaticEmbedding
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

WIDTH = 32  # of token states
LATE_WIDTH = 16  # of token vectors of late interaction
MAX_TOKENS = 64  # that the networks allow
TOKENIZERS = {"wordpiece": "bert", "bpe": "roberta", "unigram": "xlm-roberta", "decoder": "qwen3", "slow": "bert"}
SPECIALS = ["PAD", "UNK", "CLS", "SEP", "MASK"]
POOLINGS = ["mean", "cls", "max", "lasttoken", "weightedmean", "mean_sqrt_len_tokens"]
LATE_LAYOUTS = ["sentence-transformers", "pylate", "colbert"]

ENGLISH = [
    "The quick brown fox jumps over the lazy dog. A man is lifting weights in a garage.",
    "PACK MY BOX WITH FIVE DOZEN LIQUOR JUGS! Taxes are due in April, 2026; query: (what is [it]?)",
]
LANGUAGES = [
    "Der Hund schläft. Où est la gare ? El niño está aquí. Собака спит в гараже. Сколько стоит билет?",
    "狗在车库里睡觉。今天天气很好。 犬がガレージで寝ています。きょうはいい天気です。",
    "الكلب ينام في المرآب. كم ثمن التذكرة؟ สุนัขนอนในโรงรถ วันนี้อากาศดี",
]
_DOUBLING = """from sentence_transformers.base.modules import Normalize
class Doubling(Normalize):
    def forward(self, features):
        features["sentence_embedding"] = 2 * features["sentence_embedding"]
        return features
"""


def tiny_encoder(
    folder: Path,
    *,
    tokenizer: str = "wordpiece",
    pooling: str | tuple[str, ...] = "mean",
    include_prompt: bool = True,
    dense_width: int | None = None,
    layer_norm: bool = False,
    normalize: bool = True,
    max_tokens: int = 32,
    do_lower_case: bool = False,
    custom_code: bool = False,
    **settings: Any,
) -> Path:
    """Saves an encoder of one vector into ``folder`` and returns the folder.

    Args:
        tokenizer: One of ``TOKENIZERS``: BERT that knows English letters alone; RoBERTa with bytes; XLM-R with several
            scripts; a causal Qwen3 with a last token, padded on the left; BERT with a tokenizer without offsets.
        pooling: One of ``POOLINGS``, or several whose vectors are concatenated.
        dense_width: Width of a ``Dense`` layer after the pooling; None: no such layer.
        max_tokens: Tokens that the model reads of a text, special ones included.
        custom_code: Adds a module whose class is a file of the folder: it doubles the vector.
        settings: Of ``SentenceTransformer``: prompts, default_prompt_name, truncate_dim, similarity_fn_name.
    """
    transformer = _transformer(folder, tokenizer, max_tokens, do_lower_case)
    pool = Pooling(WIDTH, pooling, include_prompt=include_prompt)
    width = dense_width or pool.get_embedding_dimension()
    dense = [Dense(pool.get_embedding_dimension(), width)] if dense_width else []
    norms = [LayerNorm(width)] * layer_norm + [Normalize()] * normalize
    model = SentenceTransformer(modules=[transformer, pool, *dense, *norms], device="cpu", **settings)
    model.save(str(folder), create_model_card=False)
    if custom_code:
        custom = {"idx": 9, "name": "custom", "path": "", "type": "tiny_doubling.Doubling"}
        _write(folder / "modules.json", [*_read(folder / "modules.json"), custom])
        (folder / "tiny_doubling.py").write_text(_DOUBLING, encoding="utf-8")
    return folder


def tiny_static_encoder(folder: Path, *, is_model2vec: bool = False, **settings: Any) -> Path:
    """Saves a model that averages vectors of word pieces, as sentence-transformers or model2vec writes it."""
    torch.manual_seed(7)
    tokenizer = _wordpiece()
    vectors = torch.randn(tokenizer.get_vocab_size(), WIDTH)
    modules = [StaticEmbedding(tokenizer, vectors), *([Normalize()] if is_model2vec else [])]
    SentenceTransformer(modules=modules, device="cpu", **settings).save(str(folder), create_model_card=False)
    if is_model2vec:
        save_file({"embeddings": vectors}, folder / "model.safetensors")
        _write(folder / "config.json", {"model_type": "model2vec", "architectures": ["StaticModel"], "normalize": True})
        (folder / "config_sentence_transformers.json").unlink()
    return folder


def tiny_late_interaction(
    folder: Path,
    *,
    layout: str = "sentence-transformers",
    tokenizer: str = "wordpiece",
    query_tokens: int = 16,
    document_tokens: int = 32,
    has_query_expansion: bool = True,
    skiplist: Sequence[str] = (".", ",", "!", "?"),
) -> Path:
    """Saves an encoder of one unit vector a token, width ``LATE_WIDTH``, with a marker before queries and documents.

    The layout is one of ``LATE_LAYOUTS``: a ``MultiVectorEncoder``, a PyLate folder, or a Stanford ColBERT checkpoint,
    which always fills queries up with mask tokens and skips punctuation in documents.
    """
    markers = {"query": "[unused0] ", "document": "[unused1] "}
    transformer = _transformer(folder, tokenizer, MAX_TOKENS, markers="".join(markers.values()))
    linear = torch.randn(LATE_WIDTH, WIDTH)
    if layout == "colbert":
        weights = {f"bert.{name}": tensor for name, tensor in load_file(folder / "model.safetensors").items()}
        save_file({**weights, "linear.weight": linear}, folder / "model.safetensors", metadata={"format": "pt"})
        _write(folder / "config.json", _read(folder / "config.json") | {"architectures": ["HF_ColBERT"]})
        ids = {"query_token_id": "[unused0]", "doc_token_id": "[unused1]", "mask_punctuation": True}
        lengths = {"query_maxlen": query_tokens, "doc_maxlen": document_tokens, "dim": LATE_WIDTH}
        _write(folder / "artifact.metadata", {**ids, **lengths, "attend_to_mask_tokens": False})
        return folder
    transformer.query_expansion = {"strategy": "fixed", "length": query_tokens} if has_query_expansion else None
    transformer.query_length = None if has_query_expansion else query_tokens
    transformer.document_length = document_tokens
    dense = Dense(WIDTH, LATE_WIDTH, False, torch.nn.Identity(), linear, module_input_name="token_embeddings")
    modules = [transformer, dense, MultiVectorMask(list(skiplist)), Normalize("token_embeddings")]
    MultiVectorEncoder(modules=modules, prompts=markers, device="cpu").save(str(folder), create_model_card=False)
    if layout == "pylate":  # two modules, and settings beside the prompts
        settings = {"model_type": "ColBERT", "similarity_fn_name": "MaxSim", "skiplist_words": list(skiplist)}
        settings |= {"query_prefix": markers["query"], "document_prefix": markers["document"]}
        settings |= {"query_length": query_tokens, "document_length": document_tokens}
        settings["do_query_expansion"] = has_query_expansion
        _write(folder / "config_sentence_transformers.json", settings)
        first, second = _read(folder / "modules.json")[:2]
        _write(folder / "modules.json", [first, {**second, "type": "pylate.models.Dense.Dense"}])
        _write(folder / "sentence_bert_config.json", {"max_seq_length": MAX_TOKENS, "do_lower_case": False})
        path = folder / second["path"] / "config.json"
        _write(path, {name: value for name, value in _read(path).items() if not name.startswith("module_")})
    return folder


def _transformer(folder: Path, kind: str, max_tokens: int, is_lower: bool = False, markers: str = "") -> Transformer:
    """Two random layers after a tokenizer, saved into the folder. Large weights: every token changes every state."""
    tokens = _tokenizer(kind)
    tokens.add_special_tokens({"additional_special_tokens": markers.split()})
    shape = {"vocab_size": len(tokens), "pad_token_id": tokens.pad_token_id, "eos_token_id": tokens.eos_token_id}
    shape |= {"hidden_size": WIDTH, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
    shape |= {"num_key_value_heads": 1, "head_dim": 16} if kind == "decoder" else {}
    # RoBERTa's positions begin behind the id of its padding token.
    shape |= {"max_position_embeddings": MAX_TOKENS + 2 * ("roberta" in TOKENIZERS[kind]), "initializer_range": 0.2}
    torch.manual_seed(7)
    config = transformers.AutoConfig.for_model(TOKENIZERS[kind], **shape)
    transformers.AutoModel.from_config(config).save_pretrained(folder)
    tokens.save_pretrained(folder)
    return Transformer(str(folder), max_seq_length=max_tokens, do_lower_case=is_lower)


def _tokenizer(kind: str) -> transformers.PreTrainedTokenizerBase:
    if kind == "slow":
        return transformers.ByT5Tokenizer()
    if kind == "wordpiece":
        tokens, names = _wordpiece(), {f"{name.lower()}_token": f"[{name}]" for name in SPECIALS}
    elif kind == "decoder":
        tokens = _byte_bpe(["<end>"], "$A <end>")
        names = {"pad_token": "<end>", "eos_token": "<end>", "padding_side": "left"}
    else:
        tokens = (_byte_bpe if kind == "bpe" else _unigram)(["<s>", "<pad>", "</s>", "<unk>", "<mask>"], "<s> $A </s>")
        names = {"pad_token": "<pad>", "unk_token": "<unk>", "mask_token": "<mask>"}
        names |= {"bos_token": "<s>", "cls_token": "<s>", "eos_token": "</s>", "sep_token": "</s>"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokens, **names)


def _wordpiece() -> Tokenizer:
    """Words and letters of the English lines; case is kept."""
    specials = [f"[{name}]" for name in SPECIALS]
    words = [word for line in ENGLISH for word, _ in pre_tokenizers.BertPreTokenizer().pre_tokenize_str(line)]
    letters = sorted({letter for word in words for letter in word + word.lower() + word.upper()})
    names = dict.fromkeys([*specials, *letters, *(f"##{letter}" for letter in letters), *words])
    tokens = Tokenizer(models.WordPiece({name: i for i, name in enumerate(names)}, unk_token="[UNK]"))
    tokens.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokens.pre_tokenizer, tokens.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    return _with_specials(tokens, specials, "[CLS] $A [SEP]")


def _byte_bpe(specials: list[str], template: str) -> Tokenizer:
    """Merges of bytes, learned from all lines: a text of any script has tokens."""
    tokens = Tokenizer(models.BPE())
    tokens.pre_tokenizer, tokens.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    settings = {"initial_alphabet": sorted(pre_tokenizers.ByteLevel.alphabet()), "show_progress": False}
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=specials, **settings)
    tokens.train_from_iterator([*ENGLISH, *LANGUAGES], trainer)
    return _with_specials(tokens, specials, template)


def _unigram(specials: list[str], template: str) -> Tokenizer:
    """Words of all lines by frequency, and all letters; made by hand, as the trainer's result varies between runs."""
    split = pre_tokenizers.Metaspace()
    words = Counter(word for line in [*ENGLISH, *LANGUAGES] for word, _ in split.pre_tokenize_str(line))
    pieces = [(name, 0.0) for name in specials]
    pieces += [(word, float(np.log(count / words.total()))) for word, count in words.items() if len(word) > 1]
    pieces += [(letter, -12.0) for letter in sorted({letter for word in words for letter in word})]
    tokens = Tokenizer(models.Unigram(pieces, unk_id=specials.index("<unk>")))
    tokens.normalizer, tokens.pre_tokenizer, tokens.decoder = normalizers.NFKC(), split, decoders.Metaspace()
    return _with_specials(tokens, specials, template)


def _with_specials(tokens: Tokenizer, specials: list[str], template: str) -> Tokenizer:
    tokens.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in specials])
    used = [(name, tokens.token_to_id(name)) for name in specials if name in template]
    tokens.post_processor = processors.TemplateProcessing(single=template, special_tokens=used)
    return tokens


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")
