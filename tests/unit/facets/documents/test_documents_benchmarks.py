"""The benchmarks of documents and search run and report what they promise."""

import json

import pytest
from source_tree import ROOT

from benchmarks import cluster, gpu, hybrid, peers, scale


def test_hybrid_benchmark_reports_both_sides_long_documents_and_size(capsys: pytest.CaptureFixture[str]) -> None:
    hybrid.main(["--documents", "300", "--long-every", "50", "--queries", "4"])
    report = json.loads(capsys.readouterr().out)
    assert report["figures"]["facets"]["recall"] == report["figures"]["flat_faiss"]["recall"] == 1.0
    assert report["times_faster"]["flat_faiss+bm25s"] == 1.0
    assert (
        report["figures"].keys() == report["times_faster"].keys() >= {"hybrid", "lexical", "hybrid, 8 facets", "bm25s"}
    )
    assert 12 * 384 < report["bytes_per_document"]["store_beside_text"] < 16 * 1024


def test_cluster_benchmark_reports_each_index_and_the_sizes_that_the_page_says() -> None:
    found = cluster.measure("faiss", (400, 3, 32), 3)
    assert found["index_kind"] == "faiss-ivf-int8" and found["all"]["recall_10"] >= 0.9  # type: ignore[index]
    sizes = cluster.sizing()
    page = (ROOT / "docs" / "run" / "cluster.md").read_text(encoding="utf-8")
    said = (f"{sizes['vectors']:g} GB", f"{sizes['codes']:g} GB", f"{sizes['ids']:g} GB", f"{sizes['truth']:g} GB")
    assert all(size in page for size in (*said, f"{sizes['memory_a_node']:g} GB", f"{sizes['nodes']} nodes"))


@pytest.mark.slow
def test_scale_benchmark_reports_recall_ratios_memory_and_pauses(capsys: pytest.CaptureFixture[str]) -> None:
    scale.main(["--documents", "600", "--facets", "2", "--dim", "32", "--queries", "5", "--new", "600"])
    report = json.loads(capsys.readouterr().out)
    assert report["vectors"] == 1200
    assert report["search"]["recall"] == 1.0
    assert report["adding"]["not_found_at_once"] == 0
    assert report["adding"]["longest_search_ms"].keys() == {"alone", "adding", "folding"}
    assert report["bytes_per_document"]["disk"] > 2 * 32


@pytest.mark.slow
def test_peers_benchmark_measures_what_is_installed_and_names_what_is_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "find_spec", lambda module: True if module == "facets" else None)
    peers.main(["--vectors", "400", "--dim", "32", "--queries", "4", "--questions", "max_sim"])
    report = json.loads(capsys.readouterr().out)
    assert report["not_installed"] == ["qdrant-edge-py", "lancedb"] and report["versions"] == {}
    ours = report["figures"]["max_sim"]["facets"]
    assert ours["recall"] > 0.9, "the truth is of 32-bit vectors, what is stored has 8 bits a dimension"
    assert ours["new_documents"]["not_first_at_once"] == 0
    assert ours["bytes_per_vector"]["disk"] > 32


def test_gpu_benchmark_compares_a_device_with_the_processor(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpu.main(["--device", "cpu", "--num-texts", "8", "--num-documents", "100", "--skip-tests"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["results_agree"] and report["search"]["same_documents"] == 1.0
    assert report["encoding"].keys() == {"facets-passages-en", "facets-en"}


def test_gpu_benchmark_says_that_there_is_no_gpu(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    with pytest.raises(SystemExit) as ended:
        gpu.main([])
    assert ended.value.code == 2
    assert "CUDA" in capsys.readouterr().err
