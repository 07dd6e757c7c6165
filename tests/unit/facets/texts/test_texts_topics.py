"""Topics: what the facets of a text say comes next, in words, without what is avoided."""

import numpy as np
import pytest

from facets.errors import InvalidInputError
from facets.texts.topics import CURVE, TextTopics, suggest_topics


def words_of(topics: TextTopics) -> list[str]:
    return [topic.words[0].word for topic in topics.topics]


def test_topics_are_words_with_vectors_that_can_be_searched_with(model):
    first, second = suggest_topics(model, ["cat truck", "piano"], num_words=2)
    assert set(words_of(first)) == {"cat", "truck"}  # the third facet says truck again
    assert words_of(second) == ["piano"]
    np.testing.assert_allclose(np.linalg.norm(first.vectors, axis=1), 1.0, atol=1e-6)
    assert first.vectors.shape == (2, model.dim)
    assert all(len(topic.words) == 2 for topic in first.topics)
    assert all(topic.novelty < 0.3 and topic.likelihood is None for topic in first.topics)


def test_avoided_topics_are_left_out(model):
    assert words_of(suggest_topics(model, ["cat truck violin"], avoid=["puppy", "concert"])[0]) == ["truck"]
    assert suggest_topics(model, ["cat"], avoid=["cat"])[0].topics == ()


def test_what_is_kept_is_read_behind_the_text(model):
    kept = suggest_topics(model, ["cat"], keep=["piano music"])[0]
    assert model.encoded[-1] == "cat piano music"
    assert "music" in words_of(kept)


def test_of_a_long_text_the_last_sentences_are_read(model):
    text = " ".join(["A cat and a dog are here."] * 30) + "\n\nThe violin and the piano are\nin the concert."
    suggest_topics(model, [text])
    assert model.encoded[-1].endswith("The violin and the piano are in the concert.")
    assert len(model.tokenizer.words(model.encoded[-1:])[0]) <= model.max_tokens


def test_at_most_so_many_topics_and_the_likeliest_first(model):
    model.score_curves[CURVE] = np.array([[0.0, 1.0], [0.1, 0.6]])
    topics = suggest_topics(model, ["cat truck violin"])[0].topics
    told = [topic.likelihood for topic in topics]
    assert told == sorted(told, reverse=True)
    assert all(0.1 <= one <= 0.6 for one in told)
    assert len(suggest_topics(model, ["cat truck violin"], num_topics=2)[0].topics) == 2


@pytest.mark.parametrize(
    ("texts", "options", "path"),
    [
        ([" "], {}, ("texts", 0)),
        (["cat"], {"num_topics": 0}, "num_topics"),
        (["cat"], {"num_words": 0}, "num_words"),
        (["cat"], {"keep": ["dog"], "avoid": ["truck", "dog"]}, ("avoid", 1)),
        (["cat"], {"keep": ["xyzzy"]}, ("keep", 0)),
        (["cat"], {"avoid": ["the of"]}, ("avoid", 0)),
        (["cat"], {"avoid": [""]}, ("avoid", 0)),
    ],
)
def test_what_cannot_be_is_said_with_its_place(model, texts, options, path):
    with pytest.raises(InvalidInputError) as raised:
        suggest_topics(model, texts, **options)
    assert raised.value.path == (path if isinstance(path, tuple) else (path,)) or raised.value.path == path
