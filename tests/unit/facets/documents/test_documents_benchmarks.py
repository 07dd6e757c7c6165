"""The benchmarks of documents and search run and report what they promise."""

import json

import pytest

from benchmarks import index, search


def test_search_benchmark_reports_ratios_and_recall(capsys: pytest.CaptureFixture[str]) -> None:
    search.main(["--documents", "300", "--facets", "2", "--dim", "32", "--queries", "5"])
    report = json.loads(capsys.readouterr().out)
    assert report["index"] == "exact"
    assert report["figures"]["ours"]["recall"] == 1.0
    assert report["times_ours"]["ours"] == 1.0
    assert {"numpy_loop", "flat_faiss", "single_vector"} <= report["times_ours"].keys()


def test_index_benchmark_reports_speed_size_and_restart(capsys: pytest.CaptureFixture[str]) -> None:
    index.main(["--documents", "400", "--facets", "2", "--dim", "32", "--batch", "100"])
    report = json.loads(capsys.readouterr().out)
    assert report["documents_per_s"]["ours"] > 0
    assert report["ratio"].keys() == {"single_writes", "flat_faiss_memory"}
    assert report["bytes_per_document"]["store"] > 2 * 32 * 2
