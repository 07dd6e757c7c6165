"""A head on the facets of an encoder whose vectors are half noise wins and is kept; one that only harms is not."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from facets_lab.training.__main__ import main
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer, models, pre_tokenizers
from toy_retrieval import write_beir, write_lines

from facets.errors import CheckpointError, ConfigError
from facets.model import load
from facets.model.passage_model import PassageModel

SUBJECTS, WORDS = 40, 12  # words of a subject


def _encoder(folder: Path, *, noise: float) -> str:
    """An encoder of words whose vectors have a half that tells the subject, and a half of noise."""
    torch.manual_seed(1)
    subjects = torch.nn.functional.normalize(torch.randn(SUBJECTS, 16), dim=1).repeat_interleave(WORDS, dim=0)
    vectors = torch.cat([subjects, noise * torch.randn(len(subjects), 16) / 4], dim=1)
    vocabulary = {"[UNK]": 0} | {f"w{number}": number + 1 for number in range(len(subjects))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    weights = torch.cat([torch.zeros(1, 32), vectors])
    SentenceTransformer(modules=[StaticEmbedding(tokenizer, weights)], device="cpu").save(str(folder))
    return f"sentence-transformers:{folder}"


def _words(subject: int, count: int) -> str:
    return " ".join(f"w{WORDS * subject + random.randrange(WORDS)}" for _ in range(count))


@pytest.fixture
def data(tmp_path: Path) -> Sequence[str]:
    """Options for pairs and development sets: a question is about the subject of its answer, in other words."""
    random.seed(1)

    def pairs(name: str) -> Path:
        lines = [{"query": _words(row % SUBJECTS, 2), "positive": _words(row % SUBJECTS, 4)} for row in range(400)]
        return write_lines(tmp_path / name, list(map(json.dumps, lines)))

    def dev(name: str) -> Path:
        documents = {f"d{subject}": ("", _words(subject, 4)) for subject in range(SUBJECTS)}
        queries = {f"q{subject}": _words(subject, 2) for subject in range(SUBJECTS)}
        judgements = {f"q{subject}": {f"d{subject}": 1} for subject in range(SUBJECTS)}
        documents["blank"] = ("", "")
        return write_beir(tmp_path / name, documents=documents, queries=queries, judgements=judgements)

    files = [f"--pairs={pairs(name)}" for name in ("one.jsonl", "two.jsonl")]
    return [*files, *(f"--dev={dev(name)}" for name in ("first", "second"))]


def _train(data: Sequence[str], encoder: str, out: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    assert main(["passages", "--encoder", encoder, "--out", str(out), *data]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_head_that_removes_noise_is_written_and_loads(
    data: Sequence[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    encoder = _encoder(tmp_path / "noisy", noise=2)
    report = _train(data, encoder, tmp_path / "out", capsys)
    before, after = (report["models"][name]["facets"]["ndcg_10"] for name in ("noisy", "noisy-head"))
    assert report["written"] and report["gain"]["ndcg_10_ci95_from"] > 0 and after > before + 0.05
    plain, model = load(encoder, PassageModel), load(tmp_path / "out" / "model", PassageModel)
    assert (model.name, model.space, model.embed(["w1 w2"]).tolist()) == (
        "noisy-head",
        plain.space,
        plain.embed(["w1 w2"]).tolist(),
    )
    assert model.revision != plain.revision
    facets, changed = plain.encode(["w1 w2. w50 w51."]), model.encode(["w1 w2. w50 w51."])
    assert (facets.any(axis=2) == changed.any(axis=2)).all()
    assert abs(changed[0, 0, 16:]).max() < abs(facets[0, 0, 16:]).max()
    with pytest.raises(ConfigError, match="backend must be"):
        load(tmp_path / "out" / "model", backend="tensorrt")
    config = tmp_path / "out" / "model" / "config.json"
    settings = config.read_text()
    config.write_text(json.dumps(json.loads(settings) | {"encoder_of": str(config.parent)}))
    with pytest.raises(CheckpointError, match="without a head"):
        load(tmp_path / "out" / "model")
    config.write_text(settings)
    _encoder(tmp_path / "noisy", noise=1)
    with pytest.raises(CheckpointError, match="train it again"):
        load(tmp_path / "out" / "model")
