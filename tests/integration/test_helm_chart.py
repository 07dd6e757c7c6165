"""The Helm chart by Helm itself: linted, rendered in every shape, and held against what the server understands."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from facets_server.runtime.config import load_config
from source_tree import ROOT

yaml = pytest.importorskip("yaml")
CHART = ROOT / "deploy" / "helm" / "facets"
HELM = shutil.which("helm", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
ALL = {
    "tls": {"secretName": "certificates", "clientCertificates": True},
    "keys": {"secretName": "keys"},
    "metrics": {"serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}}},
    "models": ["facets-en", "facets-passages-en"],
    "config": "[limits]\nmax_text_bytes = 9000\n",
    "persistence": {"storageClassName": "fast", "annotations": {"a": "b"}},
    "imagePullSecrets": [{"name": "registry"}],
    "priorityClassName": "high",
    "extraEnv": [{"name": "OMP_NUM_THREADS", "value": "2"}],
}


def helm(*arguments: str, values: dict | None = None) -> subprocess.CompletedProcess[str]:
    if HELM is None:
        pytest.skip("helm is not installed: make helm-check installs it")
    command = [HELM, *arguments, "--values", "-"]
    return subprocess.run(command, input=json.dumps(values or {}), capture_output=True, text=True, check=False)


def render(values: dict | None = None, name: str = "search") -> dict[str, dict]:
    """Objects by kind and name."""
    done = helm("template", name, str(CHART), "--namespace", "texts", values=values)
    assert done.returncode == 0, done.stderr
    objects = [found for found in yaml.safe_load_all(done.stdout) if found]
    return {f"{found['kind']}/{found['metadata']['name']}": found for found in objects}


def test_servers_on_postgres_are_a_deployment_that_keeps_nothing() -> None:
    found = render({"postgres": {"secretName": "database", "replicas": 3}})
    kinds = {name.partition("/")[0] for name in found}
    assert "Deployment" in kinds and "PodDisruptionBudget" in kinds and "StatefulSet" not in kinds
    spec = found["Deployment/search-facets"]["spec"]
    assert spec["replicas"] == 3 and "volumeClaimTemplates" not in spec and "serviceName" not in spec
    pod = spec["template"]["spec"]
    assert {"name": "data", "emptyDir": {}} in pod["volumes"]
    reference = {"secretKeyRef": {"name": "database", "key": "url"}}
    assert {"name": "FACETS_SERVER_ENGINE_STORE", "valueFrom": reference} in pod["containers"][0]["env"]
    [preferred] = pod["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert preferred["podAffinityTerm"]["labelSelector"]["matchLabels"] == spec["selector"]["matchLabels"]


def pod_of(objects: dict[str, dict]) -> tuple[dict, dict]:
    """The pod's specification and its container."""
    (stateful,) = (found for found in objects.values() if found["kind"] == "StatefulSet")
    pod = stateful["spec"]["template"]["spec"]
    return pod, pod["containers"][0]


@pytest.mark.parametrize("values", [{}, ALL], ids=["default", "all"])
def test_helm_finds_nothing_to_complain_about(values: dict) -> None:
    done = helm("lint", "--strict", str(CHART), values=values)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("values", [{}, ALL], ids=["default", "all"])
def test_the_server_understands_what_the_chart_sets(values: dict, tmp_path: Path) -> None:
    objects = render(values)
    _, container = pod_of(objects)
    environment = {entry["name"]: entry["value"] for entry in container["env"]}
    file = None
    if "ConfigMap/search-facets" in objects:
        file = tmp_path / "facets.toml"
        file.write_text(objects["ConfigMap/search-facets"]["data"]["facets.toml"])
    config = load_config(file, environment)
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"grpc": config.port, "http": config.http.port, "metrics": config.metrics_port}
    assert str(config.data_dir) in [mount["mountPath"] for mount in container["volumeMounts"]]
    assert config.host == "0.0.0.0" and list(config.models) == values.get("models", [])
    assert (config.security.tls_key is not None) == (config.security.api_keys_file is not None) == bool(values)
    assert config.limits.max_text_bytes == (9000 if values else load_config().limits.max_text_bytes)


def test_pods_are_locked_down_and_end_in_peace() -> None:
    pod, container = pod_of(render(ALL))
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] == 10001
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert not container["securityContext"]["allowPrivilegeEscalation"]
    # The server reads FACETS_SERVER_...; links to a service `facets-server` would be taken for settings.
    assert pod["enableServiceLinks"] is False and pod["automountServiceAccountToken"] is False
    drain = next(entry["value"] for entry in container["env"] if entry["name"] == "FACETS_SERVER_DRAIN_S")
    assert pod["terminationGracePeriodSeconds"] > float(drain)
    liveness = container["livenessProbe"]
    assert liveness["failureThreshold"] * liveness["periodSeconds"] > float(drain)
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]} | {"data"}


def test_probes_ask_health_in_the_way_that_tls_allows() -> None:
    shapes = {
        "grpc": {},
        "httpGet": {"tls": {"secretName": "certificates"}},
        "tcpSocket": {"tls": {"secretName": "certificates"}, "http": {"enabled": False}},
    }
    for kind, values in shapes.items():
        _, container = pod_of(render(values))
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            assert kind in container[probe]
    _, container = pod_of(render({"probes": {"startupSeconds": 95, "periodSeconds": 10}}))
    assert container["startupProbe"]["failureThreshold"] == 10


def test_everything_points_at_the_pod() -> None:
    objects = render(ALL)
    labels = objects["StatefulSet/search-facets"]["spec"]["template"]["metadata"]["labels"]
    selectors = [objects[f"Service/search-facets{kind}"]["spec"]["selector"] for kind in ("", "-headless")]
    selectors.append(objects["StatefulSet/search-facets"]["spec"]["selector"]["matchLabels"])
    selectors.append(objects["PodDisruptionBudget/search-facets"]["spec"]["selector"]["matchLabels"])
    assert all(selector.items() <= labels.items() for selector in selectors)
    monitor = objects["ServiceMonitor/search-facets"]["spec"]
    services = [found for found in objects.values() if found["kind"] == "Service"]
    (watched,) = (s for s in services if monitor["selector"]["matchLabels"].items() <= s["metadata"]["labels"].items())
    assert monitor["endpoints"][0]["port"] in [port["name"] for port in watched["spec"]["ports"]]
    assert objects["StatefulSet/search-facets"]["spec"]["serviceName"] == "search-facets-headless"


def test_what_is_switched_off_is_not_there() -> None:
    values = {
        "http": {"enabled": False},
        "metrics": {"enabled": False},
        "podDisruptionBudget": {"enabled": False},
        "serviceAccount": {"create": False},
    }
    objects = render(values, name="facets")
    assert set(objects) == {"Service/facets", "Service/facets-headless", "StatefulSet/facets"}
    _, container = pod_of(objects)
    assert [port["name"] for port in container["ports"]] == ["grpc"]
    assert "annotations" not in objects["Service/facets"]["metadata"]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"replicas": 2}, "replicas"),
        ({"http": {"port": 70000}}, "/http/port"),
        ({"tls": {"clientCertificates": True}}, "/tls/secretName"),
        ({"persistence": {"size": "much"}}, "/persistence/size"),
        ({"persistence": {"accessModes": ["ReadWriteMany"]}}, "/persistence/accessModes"),
        ({"logLevel": "LOUD"}, "/logLevel"),
        ({"models": ["a,b"]}, "/models/0"),
    ],
)
def test_values_that_cannot_work_are_refused_by_name(values: dict, says: str) -> None:
    done = helm("template", "search", str(CHART), values=values)
    assert done.returncode != 0 and says in done.stderr


def test_the_chart_is_of_this_version_and_every_value_has_a_rule() -> None:
    version = (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition('version = "')[2].partition('"')[0]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert chart["version"] == chart["appVersion"] == version
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    assert set(values) | {"global"} == set(schema["properties"])
