"""Training of the answer reader: its examples, and a run on a toy passage model."""

import json
from dataclasses import asdict, replace
from itertools import chain, islice
from pathlib import Path

import numpy as np
import pytest
import torch
from facets_lab.documents.folders import Folder, FolderQuestion, texts_read
from facets_lab.documents.reader import ReaderTrainer, ReaderTrainingConfig, reader, rows_of
from facets_lab.documents.reader_data import (
    EXAMPLES,
    MARKED,
    NEIGHBOURS,
    TWINS,
    Example,
    about_another,
    attribute_examples,
    augmented,
    echoes_of,
    held_out_examples,
    labelled,
    marked_examples,
    nearest_texts,
    paragraph_matches,
    says_it_of_another,
    siblings_of,
    written_examples,
)
from facets_lab.training.loop import LOSS
from toy_retrieval import write_lines
from toys import TOY_READER_ENCODER, toy_word_pieces, toy_word_vectors

from facets.model import PassageModel
from facets.model.answer_reader import AnswerReader, ReaderConfig
from facets.model.passage_checkpoint import write_encoder
from facets.model.passage_network import NetworkEncoder, SentenceEncoder

SENTENCES = ("The dog Rex plays the guitar.", "The man lifts 20 weights in the garage.", "Music is in the garage, too.")
ASKED = Example("toy", "Where does the man lift 20 weights?", "Home", SENTENCES, (1,))


def test_answers_keep_their_places_whatever_is_put_in_or_left_out() -> None:
    random = np.random.default_rng(1)
    kept = {True: 0, False: 0}
    for _ in range(200):
        example = augmented(ASKED, ["Rex", "Max"], random)
        assert example.answers is not None
        assert all(example.sentences[i].endswith(SENTENCES[1]) for i in example.answers)
        kept[bool(example.answers)] += 1
        if not example.answers:
            assert SENTENCES[1] not in example.sentences
    assert min(kept.values()) > 40


def test_echoes_repeat_the_question_and_other_things_replace_its_names() -> None:
    random = np.random.default_rng(1)
    assert all("weights" in echoes_of(ASKED.question, random) for _ in range(20))
    other = about_another(SENTENCES[1], ASKED.question, ["Max"], random)
    assert other is not None
    assert other != SENTENCES[1]
    assert about_another("Music plays.", "Who was it?", ["Max"], random) is None


def test_a_sentence_is_found_in_its_paragraph() -> None:
    paragraph = ("Home", "It is late. The man lifts twenty heavy weights in the garage today. He is tired.")
    sentence = "The man lifts twenty heavy weights in the garage today."
    places = paragraph_matches(
        [sentence, "Nothing of this stands anywhere in any paragraph at all."], iter([paragraph])
    )
    assert places == {sentence: paragraph}
    found = labelled("toy", "who?", sentence, paragraph)
    assert found is not None
    assert found.answers == (1,)
    assert labelled("toy", "who?", "Quite another sentence about boats.", paragraph) is None


def test_written_texts_name_sentences_that_exist_and_splits_are_apart() -> None:
    train, dev = written_examples("train"), written_examples("dev")
    assert len(train) > 8 * len(dev) > 1000
    assert all(0 <= i < len(one.sentences) for one in (*train, *dev) for i in one.answers or ())
    assert {one.sentences for one in train}.isdisjoint(one.sentences for one in dev)
    held_out = held_out_examples()
    assert 0.45 < np.mean([bool(one.answers) for one in held_out]) < 0.55


def test_questions_about_attributes_are_asked_of_every_text_of_a_kind() -> None:
    train, dev = attribute_examples("train"), attribute_examples("dev")
    assert {one.asked for one in train}.isdisjoint(one.asked for one in dev)
    assert all(0 <= i < len(one.sentences) for one in (*train, *dev) for i in one.answers or ())
    assert 0.1 < np.mean([bool(one.answers) for one in train]) < 0.4
    assert not any("{it}" in one.question for one in train)


def test_the_same_said_of_something_else_does_not_answer() -> None:
    asked = Example("attributes", "how loud is the Tarn 9", "Tarn 9", ("It hums at 44 dB.",), (0,), ("heater", "loud?"))
    other, same = (replace(asked, heading=heading) for heading in ("Bora 40, manual", "Our Tarn"))
    assert says_it_of_another(asked, other) and not says_it_of_another(asked, same)
    assert not says_it_of_another(replace(asked, question="how loud is the heater"), other)


def test_what_is_read_of_a_folder_has_the_answers_of_right_files_only() -> None:
    files = {
        "boiler.md": "# Boiler\n\nThe boiler was serviced in May. It lost pressure because of a worn valve.\n",
        "diary.txt": "Rain again. Somebody asked why the boiler lost pressure, and nobody knew of a worn valve.\n",
        "visits.csv": "Visit,Finding,Action\n1,The kitchen tap drips,A new washer was fitted\n2,All is well,None\n",
    }
    asked = [("why did the boiler lose pressure", ["boiler.md"], ["worn valve"]), ("who repaired the roof", [], [])]
    asked += [("what was done about the dripping tap", ["visits.csv"], ["new washer"])]
    questions = [FolderQuestion(question=q, documents=d, answers=a, kind="") for q, d, a in asked]
    read = [texts for _, texts in texts_read(Folder(name="home", split="dev", files=files, questions=questions))]
    assert [sum(bool(text.answers) for text in texts) for texts in read] == [1, 0, 1]
    for texts, (_, _, (*part,)) in zip(read, asked, strict=True):
        assert all(part[0] in text.sentences[i] for text in texts for i in text.answers)


def test_a_twin_is_read_beside_its_sibling_if_only_one_of_them_answers() -> None:
    texts = [("It is red.",), ("It is late.",), ("It weighs a ton.", "It is red.")]
    asked = [("colour?", (0,), "7"), ("colour?", (), "7"), ("colour?", (1,), None), ("of it?", (0,), "7")]
    examples = [
        Example(TWINS, question, "Car", texts[number % 3], answers, pair and (pair, question))
        for number, (question, answers, pair) in enumerate(asked)
    ]
    assert siblings_of(examples) == [[1], [0], [], []]


def test_runs_of_a_marked_file_cover_it_and_are_read_beside_each_other() -> None:
    examples = list(islice(marked_examples(), 40))
    groups = [example.asked for example in examples]
    runs = [example for example in examples if example.asked == groups[0]]
    said = list(chain.from_iterable(run.sentences for run in runs))
    assert len(runs) > 1 and said[0] == runs[0].heading and len(set(said)) > 20
    assert sum(len(run.answers or ()) for run in runs) == 4  # the sentences that its writer marked
    neighbours = nearest_texts(examples)
    assert all(groups[other] == group for group, others in zip(groups, neighbours, strict=True) for other in others)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    torch.manual_seed(2)  # with other weights a toy may prefer what does not answer, and cannot be calibrated
    network = NetworkEncoder(SentenceEncoder(TOY_READER_ENCODER), toy_word_pieces(), window_tokens=16, device="cpu")
    PassageModel(network, toy_word_vectors(), name="toy", space="toy").save(tmp_path / "start")
    said = [(f"the weight {i} is in the garage", "a dog plays") for i in range(8)]
    rows = [asdict(Example("toy", f"where is weight {i}", "", text, (0,))) for i, text in enumerate(said)]
    write_lines(tmp_path / EXAMPLES, list(map(json.dumps, rows)))
    np.save(tmp_path / NEIGHBOURS, (np.arange(8)[:, None] + np.arange(1, 4)) % 8)
    encoder = TOY_READER_ENCODER.to_dict()
    settings = {"name": "toy-reader", "data": str(tmp_path), "start": str(tmp_path / "start"), "num_steps": 2}
    lines = [
        *(f"{name} = {json.dumps(value)}" for name, value in settings.items()),
        "batch_size = 2",
        "[shares]",
        "toy = 1.0",
    ]
    lines += ["[model]", *(f"{name} = {json.dumps(value)}" for name, value in encoder.items())]
    (tmp_path / "toy.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path / "toy.toml"


def test_a_run_writes_a_calibrated_reader_that_another_run_can_begin_with(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    question, sentences = "the dog plays", ("a dog plays guitar", "the man")
    examples = [Example("toy", question, "", sentences[:1], (0,)), Example("toy", question, "", sentences[1:], ())] * 3
    monkeypatch.setattr("facets_lab.documents.reader.held_out_examples", lambda: examples)
    reader(config, tmp_path / "run")
    written = AnswerReader.shared(tmp_path / "run" / "model")
    assert written.config.training["step"] == 2
    assert np.isfinite(written.read(question, [("", sentences)])[0]).all()
    settings = ReaderTrainingConfig.from_toml(config)
    again = ReaderTrainer(settings.replaced(start=str(tmp_path / "run" / "model")))
    np.testing.assert_allclose(
        again.network.score.weight.detach().numpy(), written.network.score.weight.numpy(), atol=0.01
    )


def test_other_runs_of_a_marked_file_keep_the_sentences_that_belong_in_a_summary(config: Path) -> None:
    settings = ReaderTrainingConfig.from_toml(config)
    path = Path(settings.data) / EXAMPLES
    path.write_text(path.read_text().replace('"source": "toy"', f'"source": "{MARKED}"'))
    batch = next(ReaderTrainer(settings.replaced(shares={MARKED: 1.0})).batches(0))
    assert len(batch) == 4 and all(example.answers == (0,) for example in batch)


def test_a_reader_begins_with_a_layer_of_its_teacher_and_learns_from_it(config: Path, tmp_path: Path) -> None:
    settings, path = ReaderTrainingConfig.from_toml(config), str(tmp_path / "teacher")
    teacher = ReaderTrainer(settings)
    torch.nn.init.normal_(teacher.network.score.weight)
    facts = ReaderConfig(name="toy", encoder=TOY_READER_ENCODER)
    write_encoder(Path(path), facts, teacher.network.state_dict(), teacher.pieces)
    distances = []
    for name in ("", path):
        one_layer = settings.model.replaced(num_layers=1)
        student = ReaderTrainer(settings.replaced(start=path, start_layers=[1], teacher=name, model=one_layer))
        weights, own = student.network.state_dict(), teacher.network.state_dict()
        layer = "encoder.layers.{}.feedforward_out.weight"
        torch.testing.assert_close(weights[layer.format(0)], own[layer.format(1)], atol=0.01, rtol=0)
        batch, optimizer = next(student.batches(0)), torch.optim.Adam(student.network.parameters(), lr=0.01)
        for step in range(30):
            optimizer.zero_grad()
            student.step(batch, step)[LOSS].backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        rows = rows_of(batch, student.pieces)
        distances.append(float((student.network(rows) - teacher.network(rows)).abs().mean().detach()))
    assert distances[1] < distances[0] / 2
    plain, untaught = (ReaderTrainer(settings.replaced(teacher=name, untaught=["to"])) for name in ("", path))
    batch = next(plain.batches(0))
    assert float(plain.step(batch, 0)[LOSS]) == pytest.approx(float(untaught.step(batch, 0)[LOSS]))
