from pathlib import Path

import pytest
from facets_server.runtime.config import ServerConfig, load_config

from facets.errors import ConfigError
from facets.index.config import EngineConfig


def test_defaults_need_nothing():
    assert load_config() == ServerConfig()


def test_flags_win_over_environment_and_environment_over_file(tmp_path):
    file = tmp_path / "server.toml"
    file.write_text(
        'port = 1\ndrain_s = 7\ndata_dir = "from-file"\nmodels = ["a"]\n'
        "[limits]\nmax_top_k = 5\n[admission]\nmax_streams = 3\n"
    )
    environment = {
        "FACETS_SERVER_PORT": "2",
        "FACETS_SERVER_LIMITS_MAX_TOP_K": "6",
        "FACETS_SERVER_MODELS": "b, c",
        "OTHER": "x",
    }
    config = load_config(file, environment, {"port": 3, "host": None})
    assert config.port == 3
    assert config.limits.max_top_k == 6
    assert config.models == ("b", "c")
    assert config.data_dir == Path("from-file")
    assert config.drain_s == 7.0
    assert config.admission.max_streams == 3
    assert config.host == ServerConfig().host


def test_settings_of_the_engine_come_from_file_and_environment(tmp_path):
    file = tmp_path / "server.toml"
    file.write_text("[engine]\nexact_max_facets = 5000\ncode = 'int8'\nmax_database_bytes = 10000000\n")
    config = load_config(
        file, {"FACETS_SERVER_ENGINE_RECALL_TARGET": "0.9", "FACETS_SERVER_ENGINE_SNAPSHOT_ON_CLOSE": "false"}
    )
    assert config.engine == EngineConfig(
        exact_max_facets=5000, code="int8", max_database_bytes=10_000_000, recall_target=0.9, snapshot_on_close=False
    )


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("port = 'x'", "port must be of type integer"),
        ("port = true", "port must be of type integer"),
        ("port = 70000", "port must be <= 65535"),
        ("prt = 1", "unknown setting 'prt'"),
        ("[limits]\nmax_top = 1", "unknown setting 'limits.max_top'"),
        ("[limits]\nmax_top_k = 0", "max_top_k must be a number >= 1"),
        ("[limits]\nmax_top_k = 1001", "max_top_k must be <= 1000"),
        ("[limits]\nmax_page_size = 1001", "max_page_size must be <= 1000"),
        ("[limits]\nmax_documents_per_upsert = 10001", "max_documents_per_upsert must be <= 10000"),
        ("[engine]\nexact_max_facets = -1", "exact_max_facets must be >= 0"),
        ("[engine]\ncode = 'fp8'", "engine.code must be"),
        ("[engine]\nsnapshot_on_close = 'no'", "engine.snapshot_on_close must be"),
        ("port = ", "is not TOML"),
        ("[security]\ntls_key = 'k'", "must be given together"),
        ("log_level = 'LOUD'", "log_level must be"),
    ],
)
def test_bad_files_are_told_in_one_sentence(tmp_path, text, match):
    file = tmp_path / "server.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=match):
        load_config(file)


def test_bad_environment_is_told():
    with pytest.raises(ConfigError, match="FACETS_SERVER_PORT must be of type integer, got 'many'"):
        load_config(None, {"FACETS_SERVER_PORT": "many"})
    with pytest.raises(ConfigError, match="FACETS_SERVER_PROT names no setting"):
        load_config(None, {"FACETS_SERVER_PROT": "1"})


def test_a_missing_file_is_told(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(tmp_path / "none.toml")


def test_the_documented_file_loads_and_tells_the_defaults(tmp_path):
    document = (Path(__file__).parents[4] / "docs" / "server.md").read_text()
    file = tmp_path / "server.toml"
    file.write_text(document.split("```toml\n")[1].split("```")[0])
    config = load_config(file)
    defaults = ServerConfig()
    assert (config.limits, config.batcher, config.admission) == (defaults.limits, defaults.batcher, defaults.admission)
    assert (config.port, config.drain_s, config.data_dir) == (defaults.port, defaults.drain_s, defaults.data_dir)
