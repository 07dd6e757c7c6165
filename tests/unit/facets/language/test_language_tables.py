"""Tables are read by row: each with the names of its columns, which the header row gives."""

import time

import numpy as np
import pytest

from facets.language.reading import read
from facets.language.sentences import sentences_of

ROWS = ["X-20: Weight 2.8 kg, Price 219 EUR", "X-20S: Weight 3.1 kg, Price 259 EUR"]


def rows(text: str) -> list[str]:
    """The rows below the header row as they are read; empty without a header row."""
    found = [sentence for sentence in sentences_of(text) if sentence.row]
    return [sentence.said for sentence in found if sentence.row and sentence.row.names]


@pytest.mark.parametrize(
    "text",
    [
        "| Model | Weight | Price |\n|---|---:|---|\n| X-20 | 2.8 kg | 219 EUR |\n| **X-20S** | 3.1 kg | 259 EUR |",
        "Model | Weight | Price\n--- | --- | ---\nX-20 | 2.8 kg | 219 EUR\nX-20S | 3.1 kg | 259 EUR",
        "| Model | Weight | Price |\n| X-20 | 2.8 kg | 219 EUR |\n| X-20S | 3.1 kg | 259 EUR |",
        "| | Weight | Price |\n| X-20 | 2.8 kg | 219 EUR |\n| X-20S | 3.1 kg | 259 EUR |",
        "+--+--+--+\n| Model | Weight | Price |\n+==+==+==+\n| X-20 | 2.8 kg | 219 EUR |\n| X-20S | 3.1 kg | 259 EUR |",
        "Model\tWeight\tPrice\nX-20\t2.8 kg\t219 EUR\nX-20S\t3.1 kg\t259 EUR",
        "Model;Weight;Price\nX-20;2.8 kg;219 EUR\nX-20S;3.1 kg;259 EUR",
        "Model,Weight,Price\nX-20,2.8 kg,219 EUR\nX-20S,3.1 kg,259 EUR",
        "Model    Weight    Price\nX-20     2.8 kg    219 EUR\nX-20S    3.1 kg    259 EUR",
    ],
)
def test_a_row_is_read_with_the_names_of_its_columns(text: str) -> None:
    assert rows(text) == ROWS
    (header,) = (sentence for sentence in sentences_of(text) if sentence.row and sentence.row.is_header)
    assert "Weight" in header.text


@pytest.mark.parametrize(
    "text",
    [
        "| Weight | 3 kg |\n|---|---|\n| Height | 12 cm |\n| Width | 30 cm |",  # names and values
        "| Colour | blue |\n| Height | 12 cm |\n| Width | 30 cm |",
        "Ann | Oslo | 1962\nBo | Rome | 1971",
        "| Ann | Oslo | married |\n| Bo | Rome | single |",
        "| X-20 | 2.8 kg | 219 EUR |\n\n| X-20S | 3.1 kg | 259 EUR |",
    ],
)
def test_a_first_row_of_values_is_no_header(text: str) -> None:
    assert rows(text) == []
    assert not any(sentence.row and sentence.row.is_header for sentence in sentences_of(text))


def test_blank_cells_keep_the_columns_in_place() -> None:
    text = "| | X-20 | X-20S |\n|---|---|---|\n| Weight | 2.8 kg | 3.1 kg |\n| Lid | | steel |\n| Feet | four |\n"
    assert rows(text) == ["Weight: X-20 2.8 kg, X-20S 3.1 kg", "Lid: X-20S steel"]
    assert sentences_of(text)[-1].said == "Feet | four"


def test_the_name_of_a_column_stands_for_its_cell() -> None:
    text = "Model,Maximum weight,Price\nX-20,2.8,219\nX-20S,3.1,259"
    reading = read(text)
    starts = [reading.text.index(word) for word in ("X-20S", "Maximum weight 3.1", "3.1", "Price 259")]
    spans = reading.original(np.array([[start, start + 3] for start in starts])).tolist()
    assert [text[start:end] for start, end in spans] == ["X-2", "3", "3.1", "2"]
    assert reading.are_headings(np.array([[0, 5], [6, 14], [27, 31]])).tolist() == [True, True, False]


@pytest.mark.parametrize(("num_rows", "num_columns"), [(5_000, 3), (100, 200)])
def test_large_tables_take_linear_time(num_rows: int, num_columns: int) -> None:
    lines = [" | ".join(f"{name} {i}" for i in range(num_columns)) for name in ["column", *["7"] * num_rows]]
    text = "\n".join([f"| {lines[0]} |", "|---" * num_columns + "|", *(f"| {line} |" for line in lines[1:])])
    started = time.process_time()
    reading = read(text)
    assert time.process_time() - started < 4  # about half a second; quadratic: minutes
    assert len(reading.text) < len(text) + 310 * num_rows
    assert reading.text.split("\n")[1].startswith("7 0: column 1 7 1, column 2 7 2")
