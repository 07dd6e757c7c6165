"""Several class tokens: the network against its equations, and both experiments with tiny random weights."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from facets_lab.multicls import __main__ as program
from facets_lab.multicls import classification
from facets_lab.multicls.classification import Labelled
from facets_lab.multicls.encoder import Backbone, ContrastConfig, ContrastTrainer, MultiClassEncoder, class_similarity
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from transformers import BertConfig, BertModel

_WORDS = ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "cats", "dogs", "purr", "bark", "and", "then", "they", "sleep", "run")


def tiny(seed: int = 0) -> Backbone:
    torch.manual_seed(seed)
    config = BertConfig(
        vocab_size=len(_WORDS),
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=32,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    pieces = Tokenizer(WordLevel({word: row for row, word in enumerate(_WORDS)}, unk_token="[UNK]"))
    pieces.pre_tokenizer = Whitespace()
    pieces.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)])
    return Backbone(BertModel(config, add_pooling_layer=False), pieces)


def test_without_inserted_layers_it_is_bert_with_more_tokens() -> None:
    backbone = tiny()
    encoder = MultiClassEncoder(backbone, 2).eval()
    with torch.no_grad():
        for linear in encoder.inserted:
            linear.weight.zero_()
        encoder.tokens.copy_(backbone.bert.embeddings.word_embeddings.weight[[4, 6]])
    states = encoder.states([[1, 5, 7, 2]])
    expected = backbone.bert(input_ids=torch.tensor([[1, 4, 6, 5, 7, 2]])).last_hidden_state[:, 1:3]
    torch.testing.assert_close(states, expected)


def test_pooling_sums_weights_minus_their_mean() -> None:
    """Chang 2022, eq. 5.4: equal layers give nothing; a single token keeps its weights."""
    encoder = MultiClassEncoder(tiny(), 3).eval()
    rows = [[1, 4, 2], [1, 5, 7, 2]]
    states_BKD = encoder.states(rows)
    difference = encoder.output.weight - encoder.output.weight.mean(dim=0)
    torch.testing.assert_close(encoder.pooled(rows), sum(states_BKD[:, k] @ difference[k].T for k in range(3)))
    with torch.no_grad():
        encoder.output.weight.copy_(encoder.output.weight[:1].expand(3, -1, -1).clone())
    torch.testing.assert_close(encoder.pooled(rows), torch.zeros(2, 16), atol=1e-5, rtol=0)
    assert float(MultiClassEncoder(tiny(), 1).eval().pooled(rows).detach().abs().max()) > 0.01


def test_similarity_is_that_of_the_equation() -> None:
    """Chang 2022, eq. 5.2, pair by pair."""
    a, b = torch.randn(2, 3, 5), torch.randn(4, 3, 5)
    found = class_similarity(a, b, closest_weight=0.3)
    for i in range(2):
        for j in range(4):
            closest = max(float(torch.cosine_similarity(x, y, dim=0)) for x in a[i] for y in b[j])
            whole = float(torch.cosine_similarity(a[i].sum(0), b[j].sum(0), dim=0))
            assert float(found[i, j]) == pytest.approx(0.3 * closest + 0.7 * whole, abs=1e-5)


def test_a_hard_negative_stands_on_both_sides() -> None:
    """Chang 2022, eq. 5.3: the third of three is a negative of the first, and the first one of the third."""
    triples = [("cats purr", "they sleep", "cats run"), ("dogs bark", "they run", "dogs sleep")] * 4
    config = ContrastConfig(name="toy", num_steps=1, batch_size=2, num_classes=2, precision="float32")
    trainer = ContrastTrainer(config, tiny(), triples)
    trainer.network.eval()
    batch = next(trainer.batches(0))
    with torch.no_grad():
        parts = [trainer.network([group[k] for group in batch]) for k in range(3)]
        expected = 0.0
        for anchor, other in ((0, 2), (2, 0)):
            logits = 20.0 * class_similarity(parts[anchor], torch.cat((parts[1], parts[other])), closest_weight=0.1)
            expected += float(-logits.log_softmax(dim=1)[[0, 1], [0, 1]].mean())
        assert float(trainer.step(batch, 0)["loss"]) == pytest.approx(expected, rel=1e-4)


@pytest.fixture
def without_minilm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiny random weights in the place of MiniLM, and words in the place of its vectors."""
    monkeypatch.setattr(classification, "load_minilm", tiny)
    vectors = lambda texts: np.array([[t.count(word) for word in _WORDS] for t in texts], np.float32)  # noqa: E731
    monkeypatch.setattr(classification, "minilm", lambda: vectors)


def some_sentences() -> Labelled:
    texts = [f"{'cats' if n % 2 else 'dogs'} {_WORDS[4 + n % 9]} {_WORDS[6 + n % 7]}" for n in range(60)]
    return Labelled(texts, np.arange(60) % 2)


@pytest.mark.usefixtures("without_minilm")
def test_sentences_are_classified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = some_sentences()
    lines = "".join(f"{text}\t{label}\n" for text, label in zip(data.texts, data.labels, strict=True))
    for name in ("train.tsv", "dev.tsv"):
        (tmp_path / name).write_text(lines, encoding="utf-8")
    text = " ".join(f"Then the {_WORDS[4 + n % 9]} will {_WORDS[6 + n % 7]} again." for n in range(6))
    (tmp_path / "corpus.txt").write_text("".join(f"# Page {n}\n{text}\n\n" for n in range(80)), encoding="utf-8")
    call = ["classify", *(str(tmp_path / name) for name in ("train.tsv", "dev.tsv"))]
    call += ["--corpus", str(tmp_path / "corpus.txt")]
    call += ["--tokens", "1", "--tokens", "2", "--examples", "40", "--seeds", "2", "--steps", "4", "--batch-size", "4"]
    assert program.main([*call, "--rounds", "2", "--work-dir", str(tmp_path / "runs"), "--threads", "1"]) == 0
    found = json.loads(capsys.readouterr().out)["by_examples"]["40"]
    assert set(found) == {"K=1", "K=2", "minilm"}
    assert found["minilm"]["accuracy"]["mean"] > 95
    assert set(found["K=2"]) == {"accuracy", "matthews", "ece", "contrast_loss"}
