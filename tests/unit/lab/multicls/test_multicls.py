"""Several class tokens: the network against its equations, and both experiments with tiny random weights."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from facets_lab.multicls import __main__ as program
from facets_lab.multicls import encoder as encoder_module
from facets_lab.multicls.classification import (
    ClassifierConfig,
    Labelled,
    figures,
    measure_classifier,
    read_labelled,
    read_triples,
)
from facets_lab.multicls.encoder import (
    Backbone,
    ContrastConfig,
    ContrastTrainer,
    MultiClassEncoder,
    class_similarity,
)
from facets_lab.training.loop import OptimizerConfig
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from transformers import BertConfig, BertModel

from facets.errors import ConfigError, InvalidInputError

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


def test_rows_of_other_lengths_do_not_change_a_text() -> None:
    backbone = tiny()
    encoder = MultiClassEncoder(backbone, 3).eval()
    rows = backbone.rows(["cats purr", "dogs bark and then they sleep and run", ""], 8)
    assert [len(row) for row in rows] == [4, 8, 2]
    assert {row[-1] for row in rows} == {2}
    together = encoder(rows)
    for row, expected in zip(rows, together, strict=True):
        torch.testing.assert_close(encoder([row])[0], expected)


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


def test_figures_of_sure_and_wrong_guesses() -> None:
    sure = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    found = figures(sure, np.array([0, 1, 1, 1]))
    assert found["accuracy"] == pytest.approx(75.0)
    assert found["ece"] == pytest.approx(25.0)
    assert found["matthews"] == pytest.approx(100 / np.sqrt(3))


def test_examples_are_balanced_and_bad_lines_are_named(tmp_path: Path) -> None:
    path = tmp_path / "labelled.tsv"
    path.write_text("cats purr\t1\ndogs bark\t0\ndogs run\t0\n", encoding="utf-8")
    data = read_labelled(path)
    assert data.labels.tolist() == [1, 0, 0]
    assert sorted(data.balanced(2, seed=1).labels.tolist()) == [0, 1]
    with pytest.raises(InvalidInputError, match="2 examples of each of 2"):
        data.balanced(4, seed=1)
    for text, expected in (("cats purr\tyes\n", "line 1"), ("1\tcats\n1\tdogs\n", "two classes")):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InvalidInputError, match=expected):
            read_labelled(path)
    with pytest.raises(ConfigError, match="6 sentences"):
        read_triples([], 10)
    with pytest.raises(ConfigError, match="got 0"):
        MultiClassEncoder(tiny(), 0)


@pytest.fixture
def without_minilm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiny random weights in the place of MiniLM, and words in the place of its vectors."""
    monkeypatch.setattr(encoder_module, "load_minilm", tiny)
    vectors = lambda texts: np.array([[t.count(word) for word in _WORDS] for t in texts], np.float32)  # noqa: E731
    monkeypatch.setattr(program, "minilm", lambda: vectors)


def some_sentences() -> Labelled:
    texts = [f"{'cats' if n % 2 else 'dogs'} {_WORDS[4 + n % 9]} {_WORDS[6 + n % 7]}" for n in range(60)]
    return Labelled(texts, np.arange(60) % 2)


@pytest.mark.parametrize("num_classes", [1, 3])
def test_a_classifier_learns(num_classes: int) -> None:
    data, backbone = some_sentences(), tiny()
    config = ClassifierConfig(
        name="toy",
        num_steps=80,
        batch_size=16,
        examples=40,
        num_threads=1,
        optimizer=OptimizerConfig(learning_rate=5e-3, warmup_steps=5),
    )
    assert (
        measure_classifier((backbone, MultiClassEncoder(backbone, num_classes)), config, (data, data))["accuracy"] > 90
    )


@pytest.mark.usefixtures("without_minilm")
def test_sentences_are_classified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = some_sentences()
    lines = "".join(f"{text}\t{label}\n" for text, label in zip(data.texts, data.labels, strict=True))
    for name in ("train.tsv", "dev.tsv"):
        (tmp_path / name).write_text(lines, encoding="utf-8")
    text = " ".join(f"Then the {_WORDS[4 + n % 9]} will {_WORDS[6 + n % 7]} again." for n in range(6))
    (tmp_path / "corpus.txt").write_text("".join(f"# Page {n}\n{text}\n\n" for n in range(80)), encoding="utf-8")
    call = [
        "classify",
        str(tmp_path / "train.tsv"),
        str(tmp_path / "dev.tsv"),
        "--corpus",
        str(tmp_path / "corpus.txt"),
    ]
    call += ["--tokens", "1", "--tokens", "2", "--examples", "40", "--seeds", "2", "--steps", "4", "--batch-size", "4"]
    assert program.main([*call, "--rounds", "2", "--work-dir", str(tmp_path / "runs"), "--threads", "1"]) == 0
    found = json.loads(capsys.readouterr().out)["by_examples"]["40"]
    assert set(found) == {"K=1", "K=2", "minilm"}
    assert found["minilm"]["accuracy"]["mean"] > 95
    assert set(found["K=2"]) == {"accuracy", "matthews", "ece", "contrast_loss"}
