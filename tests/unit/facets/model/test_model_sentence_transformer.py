"""Passage models of tiny random encoders of every kind, against sentence-transformers itself."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Router
from sentence_transformers.sentence_transformer.modules import BoW
from tiny_encoders import POOLINGS, TOKENIZERS, tiny_encoder, tiny_static_encoder

import facets
from facets.errors import CheckpointError, ConfigError, InvalidInputError, NotFoundError
from facets.model import FacetModel, PassageModel
from facets.model.sentence_transformer import find_encoder, load_sentence_transformer
from facets.model.window_encoders import TokenEncoder

SHORT = "A man is lifting weights in a garage."
LONG = "The quick brown fox jumps over the lazy dog. Taxes are due in April! " * 8
LANGUAGES = "Der Hund schläft. 狗在车库里睡觉。今天天气很好。 الكلب ينام في المرآب. สุนัขนอนในโรงรถ"
PROMPTS = {"query": "query: ", "passage": "taxes: "}


def load(folder: Path, **settings: Any) -> PassageModel:
    return facets.load(f"sentence-transformers:{folder}", **settings)  # type: ignore[return-value]


def cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(left, axis=-1) * np.linalg.norm(right, axis=-1)
    return (left * right).sum(axis=-1) / lengths


ENCODERS: dict[str, dict[str, Any]] = {
    **{f"{tokenizer} {POOLINGS[0]}": {"tokenizer": tokenizer} for tokenizer in TOKENIZERS},
    **{f"wordpiece {pooling}": {"pooling": pooling} for pooling in POOLINGS},
    "decoder lasttoken": {"tokenizer": "decoder", "pooling": "lasttoken"},
    "several poolings": {"pooling": ("cls", "mean")},
    "prompts": {"prompts": PROMPTS},
    "prompts of bytes": {"tokenizer": "bpe", "prompts": PROMPTS},
    "prompts of unigrams": {"tokenizer": "unigram", "prompts": PROMPTS},
    "prompts not pooled": {"prompts": PROMPTS, "include_prompt": False},
    "default prompt": {"prompts": {"any": "fox: "}, "default_prompt_name": "any"},
    "dense, norms": {"dense_width": 24, "layer_norm": True, "normalize": False},
    "truncated": {"truncate_dim": 8},
    "dot": {"similarity_fn_name": "dot", "normalize": False},
    "lower case": {"do_lower_case": True},
}


@pytest.mark.parametrize("settings", ENCODERS.values(), ids=ENCODERS)
def test_vectors_are_those_of_sentence_transformers(settings: dict[str, Any], tmp_path: Path) -> None:
    folder = tiny_encoder(tmp_path / "tiny", max_tokens=64, **settings)
    model, peer = load(folder), SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    texts = [SHORT, "dog", "Pack my box: five dozen jugs!"]
    prompts = settings.get("prompts", {})
    default = prompts.get(settings.get("default_prompt_name"), "")
    documents = peer.encode(texts, prompt=prompts.get("passage", default) or None)
    assert cosines(model.embed(texts), documents).min() > 0.995
    queries = peer.encode(texts, prompt=prompts.get("query", default) or None)
    assert cosines(model.encode_queries(texts).facets[:, 0], queries).min() > 0.995
    assert model.dim == documents.shape[1]


@pytest.mark.parametrize(
    "name", [*(f"{tokenizer} {POOLINGS[0]}" for tokenizer in TOKENIZERS), "prompts", "dense, norms"]
)
def test_every_sentence_is_a_facet_with_its_place(name: str, tmp_path: Path) -> None:
    model = load(tiny_encoder(tmp_path / "tiny", max_tokens=64, **ENCODERS[name]))
    text = f"{SHORT}  The fox jumps. Tax is\ndue!"
    passages = model.encode_passages([text, LONG, LANGUAGES, "..."])
    found = [text[start:end] for start, end in passages.spans[0][passages.facets[0].any(axis=1)].tolist()]
    assert list(dict.fromkeys(found)) == [SHORT, "The fox jumps.", "Tax is\ndue!"]
    for place, own in enumerate([text, LONG, LANGUAGES]):
        vectors, spans = passages.document(place)
        used = vectors.any(axis=1)
        np.testing.assert_allclose(np.linalg.norm(vectors[used], axis=1), 1.0, atol=1e-5)
        assert ((spans[used, 0] < spans[used, 1]) & (spans[used, 1] <= len(own))).all()
    alone, together = model.encode_passages([LONG]).document(0)[0], passages.document(1)[0]
    assert cosines(alone, together)[alone.any(axis=1)].min() > 0.98


@pytest.mark.parametrize("is_model2vec", [False, True])
def test_static_models_give_a_facet_a_sentence(is_model2vec: bool, tmp_path: Path) -> None:
    folder = tiny_static_encoder(tmp_path / "tiny", is_model2vec=is_model2vec)
    model, peer = load(folder), SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    assert cosines(model.embed([SHORT, LONG]), peer.encode([SHORT, LONG])).min() > 0.999
    text = f"{SHORT} The fox jumps."
    passages = model.encode_passages([text, LANGUAGES])
    assert passages.spans[0, :2].tolist() == [[0, len(SHORT)], [len(SHORT) + 1, len(text)]]
    alone = peer.encode([SHORT, "The fox jumps.", text])
    units = alone / np.linalg.norm(alone, axis=1, keepdims=True)
    whole = units[2]
    nearer = cosines(passages.facets[0, :2], units[:2])
    assert (nearer > cosines(passages.facets[0, :2], units[[1, 0]])).all()
    assert (cosines(passages.facets[0, :2], whole) > cosines(units[:2], whole)).all()


def test_a_revision_names_the_files(tmp_path: Path) -> None:
    folder = tiny_encoder(tmp_path / "tiny")
    model = load(folder)
    assert (model.name, model.task) == ("tiny", "passages")
    assert model.space == f"sentence-transformers:tiny@{model.revision}"
    revision = model.revision
    for name in ("README.md", "data_config.json", "train_script.py", "pytorch_model.bin", "openvino_model.bin"):
        (folder / name).write_text("[]")
    assert load(folder).revision == revision
    for name in ("tokenizer_config.json", "1_Pooling/config.json"):
        (folder / name).write_text((folder / name).read_text() + " ")
        assert load(folder).revision != revision
        revision = load(folder).revision
    settings = json.loads((folder / "config_sentence_transformers.json").read_text())
    settings["prompts"] = PROMPTS
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    assert load(folder).revision != revision


@pytest.mark.parametrize(("backend", "name"), [("onnx", "onnx/model.onnx"), ("openvino", "openvino_model.bin")])
def test_weights_of_an_engine_are_in_its_revision(
    backend: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny_encoder(tmp_path / "tiny")
    network = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    monkeypatch.setattr("facets.model.sentence_transformer.missing_modules", lambda *names: [])
    monkeypatch.setattr("sentence_transformers.SentenceTransformer", lambda *_, **__: network)
    revisions = set()
    for content in ("one", "two"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)
        revisions.add(load(folder, backend=backend).revision)
    assert len(revisions) == 2


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("modules.json", '["a"]'),
        ("modules.json", "{}"),
        ("config.json", "[]"),
        ("config.json", '{"architectures": 3}'),
        ("config.json", '{"model_type": []}'),
        ("config_sentence_transformers.json", '{"prompts": {"query": 3}}'),
        ("config_sentence_transformers.json", '{"default_prompt_name": "other"}'),
        ("config_sentence_transformers.json", '{"truncate_dim": "many"}'),
        ("1_Pooling/config.json", "[]"),
        ("modules.json", '[{"type": "sentence_transformers.models.Router", "path": ""}]'),
        ("config_sentence_transformers.json", '{"truncate_dim": 0}'),
        ("sentence_bert_config.json", '{"max_seq_length": 2}'),
        ("sentence_bert_config.json", '{"max_seq_length": "many"}'),
    ],
)
def test_malformed_files_are_told_in_a_sentence(name: str, content: str, tmp_path: Path) -> None:
    folder = tiny_encoder(tmp_path / "tiny")
    (folder / name).write_text(content)
    with pytest.raises(CheckpointError, match="expected"):
        load(folder)


def test_lists_of_words_are_refused(tmp_path: Path) -> None:
    SentenceTransformer(modules=[BoW(["fox", "dog"])], device="cpu").save(str(tmp_path), create_model_card=False)
    with pytest.raises(CheckpointError, match="lists of words"):
        load(tmp_path)


def test_older_weights_are_downloaded_where_there_are_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def download(name: str, *, ignore_patterns: list[str], **_settings: object) -> str:
        folder = tmp_path / name
        folder.mkdir(parents=True, exist_ok=True)
        kept = {"old": ["pytorch_model.bin"], "new": ["pytorch_model.bin", "model.safetensors"]}[folder.name]
        for file in set(kept) - set(ignore_patterns):
            (folder / file).touch()
        return str(folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    for name, expected in (("old", "pytorch_model.bin"), ("new", "model.safetensors")):
        folder = find_encoder(f"any/{name}", allow_downloads=True)
        assert [path.name for path in folder.iterdir()] == [expected]


@pytest.mark.parametrize("tokenizer", ["wordpiece", "slow", "static"])
def test_texts_of_any_characters_are_read(tokenizer: str, tmp_path: Path) -> None:
    folder = tmp_path / "tiny"
    tiny_static_encoder(folder) if tokenizer == "static" else tiny_encoder(folder, tokenizer=tokenizer)
    model = load(folder)
    assert not any(map(model.problem, ["10\u00b2", "5 \u00bd", "\u2460"]))
    np.testing.assert_array_equal(model.encode(["fox \ud800"]), model.encode(["fox \ufffd"]))
    for text in ("\u200b", "\x00"):
        with pytest.raises(InvalidInputError, match="has no words"):
            model.encode([text])


def test_a_model_that_reads_few_tokens_reads_all_of_a_text(tmp_path: Path) -> None:
    model = load(tiny_encoder(tmp_path / "tiny", tokenizer="slow", max_tokens=32, prompts={"document": "on: "}))
    text = "Pneumonoultramicroscopic " * 3 + "今天天气很好" * 8
    before = model.embed([text])[0]
    words = model.encoder.split([text])[0]
    assert model.max_tokens <= 32 and len(words) > 40
    for place in range(0, len(text), 7):
        assert not np.allclose(model.embed([text[:place] + "x" + text[place + 1 :]])[0], before, atol=1e-6), place


@pytest.mark.parametrize("is_static_first", [False, True])
def test_a_router_encodes_queries_and_documents_apart(is_static_first: bool, tmp_path: Path) -> None:
    folders = tiny_encoder(tmp_path / "tiny"), tiny_static_encoder(tmp_path / "static")
    routes = [list(SentenceTransformer(str(folder), device="cpu", local_files_only=True)) for folder in folders]
    router = Router.for_query_document(*(routes[::-1] if is_static_first else routes))
    peer = SentenceTransformer(modules=[router], device="cpu")
    peer.save(str(tmp_path / "router"), create_model_card=False)
    model = load(tmp_path / "router")
    assert cosines(model.embed([SHORT]), peer.encode_document([SHORT])).min() > 0.995
    assert cosines(model.encode_queries([SHORT]).facets[:, 0], peer.encode_query([SHORT])).min() > 0.995
    weights = next((tmp_path / "router").glob("*/model.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-4] + b"1234")
    assert load(tmp_path / "router").revision != model.revision
    config = tmp_path / "router" / "router_config.json"
    config.write_text(config.read_text().replace("sentence_transformers.", "tiny."))
    with pytest.raises(CheckpointError, match="--trust-remote-code"):
        load(tmp_path / "router")


def test_own_code_of_a_model_runs_only_if_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "code"))
    folder = tiny_encoder(tmp_path / "tiny", custom_code=True)
    with pytest.raises(CheckpointError, match="--trust-remote-code"):
        load(folder)
    assert load(folder, trust_remote_code=True).encode([SHORT]).any()


def test_what_is_no_encoder_is_refused_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    with pytest.raises(NotFoundError, match="allow_downloads"):
        facets.load("sentence-transformers:nobody/nothing")
    with pytest.raises(NotFoundError, match="names no folder"):
        facets.load("sentence-transformers:no such/folder/here")
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckpointError, match=r"no modules\.json"):
        load(tmp_path / "empty")
    folder = tiny_encoder(tmp_path / "tiny")
    with pytest.raises(InvalidInputError, match="encoders are for passages"):
        facets.load(f"sentence-transformers:{folder}", FacetModel)
    (folder / "model.safetensors").write_bytes(b"broken")
    with pytest.raises(CheckpointError, match="expected a sentence-transformers model"):
        load(folder)
    for path in folder.glob("tokenizer*"):
        path.unlink()
    with pytest.raises(CheckpointError, match="no tokenizer"):
        load(folder)
    long_prompt = {"document": "word " * 40}
    with pytest.raises(CheckpointError, match="room for text"):
        load(tiny_encoder(tmp_path / "prompted", prompts=long_prompt))
    with pytest.raises(InvalidInputError, match="has no words"):
        load(tiny_encoder(tmp_path / "fine")).encode([SHORT, " "])


class Engine:
    """A network as ONNX Runtime and OpenVINO give it: no torch module, with nothing but a configuration."""

    def __init__(self, network: Any) -> None:
        self.config, self._network = network.config, network

    def forward(self, input_ids: Any, attention_mask: Any, **_others: Any) -> Any:
        return self._network(input_ids=input_ids, attention_mask=attention_mask)

    __call__ = forward


@pytest.mark.parametrize("tokenizer", ["wordpiece", "unigram"])
def test_another_engine_needs_no_torch_network(tokenizer: str, tmp_path: Path) -> None:
    folder = tiny_encoder(tmp_path / "tiny", tokenizer=tokenizer, max_tokens=66)
    plain = TokenEncoder(SentenceTransformer(str(folder), device="cpu", local_files_only=True))
    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    network = model[0].model
    del model[0].model
    model[0].model = Engine(network)
    encoder = TokenEncoder(model)
    assert encoder.longest == plain.longest
    pieces = [own.cut(slice(encoder.longest)) for own in encoder.split([LONG, SHORT])]
    bounds = [np.array([0, 3, len(own)]) for own in pieces]
    for own, other in zip(*(one.encode(pieces, bounds, query=False) for one in (encoder, plain)), strict=True):
        np.testing.assert_allclose(own, other, atol=1e-5)


def test_a_missing_or_unknown_backend_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tiny_encoder(tmp_path / "tiny")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for backend in ("onnx", "openvino"):
        with pytest.raises(ImportError, match=rf"pip install 'sentence-transformers\[{backend}\]'"):
            load_sentence_transformer(str(folder), backend=backend)
    with pytest.raises(ConfigError, match="torch, onnx"):
        load_sentence_transformer(str(folder), backend="tensorrt")


@pytest.mark.parametrize("marker", ["[D] ", "[D]"])
def test_a_marker_of_one_token_may_end_with_white_space(marker: str, tmp_path: Path) -> None:
    folder = tiny_encoder(tmp_path / "tiny", prompts={"document": marker + " " * (len(marker) < 4)})
    settings = json.loads((folder / "tokenizer.json").read_text())
    next(token for token in settings["added_tokens"] if token["content"] == "[MASK]")["content"] = marker
    settings["model"]["vocab"][marker] = settings["model"]["vocab"].pop("[MASK]")
    (folder / "tokenizer.json").write_text(json.dumps(settings))
    model, peer = load(folder), SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    assert peer.tokenizer.tokenize("[D] fox")[0] == marker
    (pieces,) = model.encoder.split([SHORT])
    assert (pieces.starts[0], pieces.ends[0]) == (0, 1)
    assert cosines(model.embed([SHORT]), peer.encode([SHORT], prompt=peer.prompts["document"])).min() > 0.995


@pytest.mark.parametrize("tokenizer", ["wordpiece", "unigram", "bpe"])
def test_words_need_no_shipped_model(tokenizer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: object) -> Path:
        raise NotFoundError("not installed", resource_type="model", resource_name=str(name))

    monkeypatch.setattr("facets.model.window_encoders.find_model", missing)
    model = load(tiny_encoder(tmp_path / "tiny", tokenizer=tokenizer))
    words = model.words.vocabulary.words
    assert words and all(word.isalpha() for word in words)
    vectors = model.words.of(["garage", "собака", "garage"])
    assert np.allclose(vectors[0], vectors[2]) and vectors.shape == (3, model.dim)
    assert cosines(vectors[0], model.embed(["garage"])[0]) > 0.999
    assert model.words.nearest(model.embed([words[0]]), 1)[0][0][1] > 0.999
