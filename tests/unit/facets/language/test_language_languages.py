# ruff: noqa: RUF001
"""Words, stop words and sentences of other languages than English, and which language a text is in."""

import time

import pytest

from facets.errors import InvalidInputError
from facets.language.languages import detect, language_of
from facets.language.sentences import sentences_of
from facets.language.terms import located_terms, query_terms, terms

# Sentences about a cat, written for this test
TEXTS = {
    "ar": "القطة نائمة على الأريكة.",
    "cs": "Kočka spí na pohovce. Má ráda smetanu, ale nepije mléko, protože je nemocná.",
    "da": "Katten sover på sofaen. Den kan godt lide fløde, men drikker ikke mælk. Hvad skal vi gøre af den nu?",
    "de": "Die Katze schläft auf dem Sofa. Sie mag Sahne, aber sie trinkt keine Milch, weil sie krank ist.",
    "en": "The cat sleeps on the sofa. It likes cream, but it does not drink milk because it is ill.",
    "es": "El gato duerme en el sofá. Le gusta la nata, pero no bebe leche porque está enfermo.",
    "fi": "Kissa nukkuu sohvalla. Se pitää kermasta, mutta se ei juo maitoa, koska se on sairas.",
    "fr": "Le chat dort sur le canapé. Il aime la crème, mais il ne boit pas de lait.",
    "hi": "बिल्ली सोफे पर सो रही है।",
    "hu": "A macska a kanapén alszik. Szereti a tejszínt, de nem iszik tejet, mert beteg.",
    "it": "Il gatto dorme sul divano. Gli piace la panna, ma non beve il latte perché è malato.",
    "ja": "猫はソファで寝ています。",
    "nl": "De kat slaapt op de bank. Hij houdt van room, maar hij drinkt geen melk omdat hij ziek is.",
    "pl": "Kot śpi na kanapie. Lubi śmietanę, ale nie pije mleka, ponieważ jest chory.",
    "pt": "O gato dorme no sofá. Ele gosta de nata, mas não bebe leite porque está doente.",
    "ru": "Кошка спит на диване. Она любит сливки, но не пьёт молоко.",
    "sv": "Katten sover på soffan. Han tycker om grädde, men han dricker inte mjölk eftersom han är sjuk.",
    "th": "แมวนอนอยู่บนโซฟา",
    "tr": "Kedi kanepede uyuyor. Kremayı çok seviyor ama hasta olduğu için süt içmiyor. Bu durum bir hafta sürdü.",
    "zh": "猫在沙发上睡觉。",
}
UNCLEAR = ["", "Apple", "SELECT de, la FROM el WHERE que = 1", "고양이가 자고 있다.", "Pferd und Wagen", "12 34 56"]


@pytest.mark.parametrize("code", TEXTS)
def test_language_of_a_text_is_detected(code: str) -> None:
    assert detect([TEXTS[code]]) == code
    assert detect(TEXTS[code].split(". ")) == code  # one text of several counts as one text


def test_short_unclear_and_mixed_texts_count_as_english() -> None:
    assert [detect([text]) for text in UNCLEAR] == ["en"] * len(UNCLEAR)
    menu = "We had the boeuf bourguignon de la maison and the tarte aux pommes, and it was a very good evening for us."
    assert detect([menu, "The sign said 会议取消, which means that the meeting was cancelled."]) == "en"


@pytest.mark.parametrize(
    ("language", "first", "second"),
    [
        ("de", "Häuser", "Haus"),
        ("fi", "taloissa", "talo"),
        ("fr", "chevaux", "cheval"),
        ("ru", "кошками", "кошка"),
        ("hi", "लड़कियों", "लड़कियाँ"),
        ("tr", "IŞIKLAR", "ışık"),
        ("el", "ΓΑΤΕΣ", "γατα"),
        ("ar", "الكِتَاب", "كتاب"),
        ("no", "hestene", "hest"),
        ("th", "น\u0e49\u0e33", "น\u0e49\u0e4d\u0e32"),  # the vowel AM in one character and in two
    ],
)
def test_forms_of_a_word_have_one_term(language: str, first: str, second: str) -> None:
    assert terms(first, language) == terms(second, language)
    assert len(terms(first, language)) == 1


@pytest.mark.parametrize(
    ("language", "query", "words"),
    [
        ("en", "What is the capital of France?", ["capital", "france"]),
        ("en", "to be or not to be", ["to", "be", "or", "not", "to", "be"]),
        ("de", "Wo liegt das alte Haus?", ["liegt", "alte", "haus"]),
        ("fr", "Où est l'avion d'Air France", ["avion", "air", "france"]),
        ("st", "lebese la katse", ["lebese", "katse"]),
        ("ja", "東京タワーの高さ", ["東京", "京タ", "タワ", "ワー", "ーの", "の高", "高さ"]),
        ("zh", "iPhone 15的价格AB-12", ["iphone", "15", "的价", "价格", "ab", "12", "ab-12"]),
    ],
)
def test_words_of_a_query(language: str, query: str, words: list[str]) -> None:
    assert [word for _, word in query_terms(query, language).words] == words


def test_documents_have_single_chinese_characters_too() -> None:
    text = "猫が寝る"
    assert terms(text, "ja") == ["猫が", "が寝", "寝る"]
    assert set(terms(text, "ja", stored=True)) - set(terms(text, "ja")) == {"猫", "寝"}
    assert located_terms(f"x {text}", 2, language="ja")[:3] == [("猫", 2, 3), ("猫が", 2, 4), ("が寝", 3, 5)]


@pytest.mark.parametrize("language", ["de", "hi", "ja", "th", "tr", "zh"])
def test_located_terms_are_the_stored_ones_without_identifiers(language: str) -> None:
    text = "Grüße aus İzmir x\u0304 น้ำตกไทย 東京は2020年 बिल्ली ＡＢ１２ ｺﾝﾋﾟｭｰﾀ"
    located = located_terms(text, language=language)
    assert sorted(term for term, _, _ in located) == sorted(terms(text, language, stored=True))
    assert all(0 <= start < end <= len(text) for _, start, end in located)


def test_unknown_code_lists_the_known_ones() -> None:
    with pytest.raises(InvalidInputError, match=r" de .* zh,"):
        language_of("tlh")


@pytest.mark.parametrize(
    "marked",
    [
        "猫が寝ています。|犬は庭にいます！|本当？|（はい。）|終わり",
        "बिल्ली सो रही है।| कुत्ता बाहर है।",
        "Կատուն քնած է։| Շունը դրսում է։",
        "ድመቷ ተኝታለች።| ውሻው ውጭ ነው።",
        "هل القط نائم؟| نعم، هو نائم.",
        "کیا بلی سو رہی ہے؟| جی ہاں۔| وہ سو رہی ہے۔",
        "แมวนอนหลับอยู่บนโซฟา| สุนัขวิ่งเล่นอยู่ในสวน",
    ],
)
def test_sentences_end_at_the_stops_of_every_script(marked: str) -> None:
    expected = [part.strip() for part in marked.split("|")]
    assert [sentence.text for sentence in sentences_of(marked.replace("|", ""))] == expected


@pytest.mark.parametrize("unit", ["猫はソファで寝ています", "แมวนอนอยู่บนโซฟา", "猫在沙发上睡觉。", "。", "؟", "า"])
def test_long_paragraphs_without_spaces_are_read_fast(unit: str) -> None:
    text = unit * (20_000 // len(unit))
    start = time.process_time()
    sentences_of(text)
    located_terms(text, language="ja")
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("\U0001f600 !? --", []),
        ("Cats running", ["cat", "run"]),
        ("AB-1234", ["ab", "1234", "ab-1234"]),
        ("error_code E0x7f", ["error", "code", "e0x7f"]),
        ("well-known", ["well", "known"]),
        ("\uff21\uff22 Stra\u00dfe", ["ab", "strass"]),
    ],
)
def test_terms_of_a_text(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


def test_phrases_keep_their_stop_words_and_are_bounded_and_counted_once() -> None:
    assert query_terms('who said "to be or not to be" and "x"').phrases == (("to", "be", "or", "not", "to", "be"),)
    assert query_terms('"a b" "a b"').phrases == (("a", "b"),)
    assert len(query_terms(" ".join(f'"a {n}"' for n in range(1000))).phrases) == 32
