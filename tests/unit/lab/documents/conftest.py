"""A tiny teacher and raw texts for training tests."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

WORDS = "the a cat dog sat ran on mat hill . ? who what where river sea deep long old town king bread milk".split()
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


@pytest.fixture(scope="session")
def teacher_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of one layer and 32 dimensions with random weights."""
    folder = tmp_path_factory.mktemp("teacher")
    vocabulary = {piece: number for number, piece in enumerate([*SPECIAL, *WORDS])}
    pieces = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    pieces.normalizer = normalizers.BertNormalizer()
    pieces.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    pieces.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    pieces.save(str(folder / "tokenizer.json"))
    shape = {
        "num_hidden_layers": 1,
        "hidden_size": 32,
        "num_attention_heads": 4,
        "intermediate_size": 48,
        "vocab_size": len(vocabulary),
        "max_position_embeddings": 64,
    }
    (folder / "config.json").write_text(json.dumps(shape))
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(1)
    save_file(transformers.BertModel(transformers.BertConfig(**shape)).state_dict(), folder / "model.safetensors")
    return folder


@pytest.fixture
def raw_texts(tmp_path: Path) -> Path:
    sentence = "The cat sat on the old mat. The dog ran on a long hill. "
    articles = "".join(f"# Town {n}\n{sentence * 2}king {n}\nThe {sentence}river\nsea\n\n" for n in range(8))
    (tmp_path / "wiki.txt").write_text(articles)
    questions = [{"query": f"Who sat on mat {n}?", "positive": f"{sentence} {n // 2}"} for n in range(12)]
    (tmp_path / "questions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in questions))
    papers = [{"title": f"Bread {n}", "abstract": sentence * 2} for n in range(6)] + [{"title": "Milk", "abstract": ""}]
    (tmp_path / "papers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in papers))
    return tmp_path
