"""What the metrics say, and that dashboard and alerts ask for nothing else."""

import json
import re
from pathlib import Path

from facets_proto.v1 import documents_pb2, texts_pb2
from facets_server.runtime.admission import Admission
from facets_server.runtime.call_context import STAGES
from facets_server.runtime.config import AdmissionConfig
from facets_server.runtime.metrics import BatchMetrics, CallMetrics
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from waiting import wait_until

ROOT = Path(__file__).resolve().parents[4]
DASHBOARD = ROOT / "deploy" / "grafana" / "facets.json"
ALERTS = ROOT / "deploy" / "prometheus" / "alerts.yaml"
SEARCH = "/facets.v1.DocumentService/Search"
FUNCTIONS = {"histogram_quantile", "sum", "max", "rate", "time", "label_values", "on", "by"}


def use(running):
    running.embedding.Embed(texts_pb2.EmbedRequest(texts=["a cat", "a dog"]))
    running.collections.CreateCollection(documents_pb2.CreateCollectionRequest(name="pets"))
    stored = [documents_pb2.Document(id=str(number), text="the cat") for number in range(3)]
    running.documents.Upsert(documents_pb2.UpsertRequest(collection="pets", documents=stored))
    query = documents_pb2.SearchQuery(text="the dog")
    running.documents.Search(documents_pb2.SearchRequest(collection="pets", queries=[query], top_k=1))


def exported(registry):
    """Sample name -> names of its labels, as Prometheus reads them; histograms have ``le``."""
    text = generate_latest(registry).decode()
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def rare():
    """Samples of what a short test does not bring about."""
    registry = CollectorRegistry()
    BatchMetrics(registry).dropped.labels("m", "expired").inc()
    CallMetrics(registry, Admission(AdmissionConfig())).checked("compared", 1.0)
    return registry


def asked(expression):
    """Names of metrics and of labels in an expression."""
    bare = re.sub(r'"[^"]*"|\[[^\]]*\]|\$\w+', "", expression)
    labels = {name for inside in re.findall(r"\{([^}]*)\}", bare) for name in re.findall(r"(\w+)\s*[=!]", inside)}
    labels |= {name for inside in re.findall(r"\b(?:by|on) \(([^)]*)\)", bare) for name in re.findall(r"\w+", inside)}
    without = re.sub(r"\{[^}]*\}|\b(?:by|on) \([^)]*\)", "", bare)
    return set(re.findall(r"[a-z_]{3,}", without)) - FUNCTIONS, labels


def expressions():
    panels = json.loads(DASHBOARD.read_text())["panels"]
    yield from (target["expr"] for panel in panels for target in panel["targets"])
    for block in re.split(r"- alert:", ALERTS.read_text())[1:]:
        yield re.search(r"expr:(?: >-)?\s*(.*?)\n\s*(?:for|annotations):", block, re.DOTALL)[1]


def test_dashboard_and_alerts_ask_only_for_what_the_server_exports(running):
    use(running)
    there = exported(rare()) | exported(running.server.registry)
    for name, labels in exported(rare()).items():
        there[name] = there[name] | labels
    wrong = []
    for expression in expressions():
        names, labels = asked(expression)
        assert names, expression
        for name in names:
            if name not in there:
                wrong.append(f"{name} is not exported: {expression}")
        known = {label for name in names for label in there.get(name, ())} | {"instance", "le"}
        wrong += [f"{label} is no label: {expression}" for label in labels - known]
    assert not wrong


def test_stages_of_calls_are_counted(running):
    use(running)
    wait_until(lambda: running.metric("facets_requests_total", method=SEARCH, code="OK"))
    counts = {stage: running.metric("facets_stage_seconds_count", stage=stage) for stage in STAGES}
    assert counts["queue"] >= 4  # each call waits for admission, if only for an instant
    assert counts["tokenize"] == counts["batch"] == counts["model"]
    assert counts["model"] >= 3  # texts, documents, query
    assert (counts["search"], counts["store"]) == (1, 1)


def test_collections_and_disk_are_shown_as_they_are(running):
    use(running)
    assert running.metric("facets_collection_documents", collection="pets") == 3
    assert running.metric("facets_collection_vectors", collection="pets") >= 3
    assert running.metric("facets_data_bytes", part="documents") > 0
    assert running.metric("facets_data_free_bytes") > 0
    assert running.metric("facets_last_backup_timestamp_seconds") == 0
    assert running.metric("process_resident_memory_bytes") > 0


def test_many_collections_do_not_make_metrics_without_end(running):
    for number in range(103):
        running.engine.create_collection(f"c{number}", model="m", model_revision="1", num_facets=1, dim=2)
    text = generate_latest(running.server.registry).decode()
    assert len(re.findall(r"^facets_collection_documents\{", text, re.MULTILINE)) == 101
    assert 'facets_collection_documents{collection="(others)"} 0.0' in text
