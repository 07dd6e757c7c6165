"""The benchmarks of search run on small inputs and report what they promise."""

import json

import pytest

from benchmarks import peers, search


@pytest.mark.slow
def test_search_benchmark_reports_recall_ratios_memory_and_pauses(capsys: pytest.CaptureFixture[str]) -> None:
    search.main(["--documents", "600", "--facets", "2", "--dim", "32", "--queries", "5", "--new", "600"])
    report = json.loads(capsys.readouterr().out)
    assert report["vectors"] == 1200
    assert report["search"]["recall"] == 1.0
    assert report["adding"]["not_found_at_once"] == 0
    assert report["adding"]["longest_search_ms"].keys() == {"alone", "adding", "building"}
    assert report["bytes_per_document"]["disk"] > 2 * 32


@pytest.mark.slow
def test_peers_benchmark_measures_what_is_installed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "find_spec", lambda module: None)
    peers.main(["--vectors", "400", "--dim", "32", "--queries", "4"])
    report = json.loads(capsys.readouterr().out)
    assert report["versions"] == {}
    for figures in report["figures"].values():
        assert figures.keys() == {"facets"}
        assert figures["facets"]["recall"] > 0.9, "the truth is of 32-bit vectors, the store has 8 bits a dimension"
        assert figures["facets"]["bytes_per_vector"]["disk"] > 32
