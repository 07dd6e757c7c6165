from pathlib import Path

import pytest
from facets_server.runtime.config import ServerConfig, load_config
from facets_server.runtime.limits import LimitsConfig

from facets.errors import ConfigError
from facets.index.config import MAX_TOP_K, EngineConfig


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
    file.write_text("[engine]\nexact_max_facets = 5000\nstored_code = 'fp16'\nmax_database_bytes = 10000000\n")
    config = load_config(
        file, {"FACETS_SERVER_ENGINE_RECALL_TARGET": "0.9", "FACETS_SERVER_ENGINE_SNAPSHOT_ON_CLOSE": "false"}
    )
    assert config.engine == EngineConfig(
        exact_max_facets=5000,
        stored_code="fp16",
        max_database_bytes=10_000_000,
        recall_target=0.9,
        snapshot_on_close=False,
    )


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("port = 'x'", "port must be an integer, got"),
        ("port = true", "port must be an integer, got"),
        ("port = 70000", "port must be <= 65535"),
        ("prt = 1", "prt is no setting"),
        ("[limits]\nmax_top = 1", "limits.max_top is no setting"),
        ("[limits]\nmax_top_k = 0", "limits.max_top_k must be >= 1, got 0"),
        ("[limits]\nmax_page_size = 1001", "limits.max_page_size must be <= 1000"),
        ("[limits]\nmax_documents_per_upsert = 10001", "limits.max_documents_per_upsert must be <= 10000"),
        ("[limits]\nmax_text_bytes = 9000000", "limits.max_text_bytes must be <= "),
        ("[engine]\nexact_max_facets = -1", "engine.exact_max_facets must be >= 0"),
        ("[engine]\nstored_code = 'fp8'", "engine.stored_code must be one of"),
        ("port = ", "is not TOML"),
        ("[limits]\nmax_texts_per_request = 'x'", 'limits.max_texts_per_request must be an integer, got "x"'),
        ("[engine]\nsnapshot_on_close = 'no'", 'engine.snapshot_on_close must be a boolean, got "no"'),
        ("limits = 3", "limits must be a table of settings"),
        ("[security]\ntls_key = 'k'", "must be given together"),
        ("[security]\ntls_certificate = 'c'", "security.tls_key must be given together with tls_certificate"),
        ("[security]\ntls_client_ca = 'c'", "security.tls_certificate must be given with tls_client_ca"),
        ("models = 'm'", "models must be a list"),
        ("log_level = 'LOUD'", "log_level must be"),
    ],
)
def test_bad_files_are_reported_in_one_sentence(tmp_path, text, match):
    file = tmp_path / "server.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=match):
        load_config(file)


def test_bad_environment_is_reported():
    with pytest.raises(ConfigError, match='FACETS_SERVER_PORT must be an integer, got "many"'):
        load_config(None, {"FACETS_SERVER_PORT": "many"})
    with pytest.raises(ConfigError, match="FACETS_SERVER_PROT names no setting"):
        load_config(None, {"FACETS_SERVER_PROT": "1"})


@pytest.mark.parametrize("text", ["5.0", "5_000", " 5", "0x5"])
@pytest.mark.parametrize("variable", ["FACETS_SERVER_PORT", "FACETS_SERVER_ENGINE_MAX_DATABASE_BYTES"])
def test_an_integer_of_the_environment_is_written_as_one(variable, text):
    with pytest.raises(ConfigError, match=f'{variable} must be an integer, got "{text}"'):
        load_config(None, {variable: text})


@pytest.mark.parametrize("variable", ["DATA_DIR", "SECURITY_TLS_KEY", "HOST", "PORT", "MODELS"])
@pytest.mark.parametrize("text", ["", " "])
def test_an_empty_variable_is_refused(variable, text):
    with pytest.raises(ConfigError, match=f"FACETS_SERVER_{variable} is empty"):
        load_config(None, {f"FACETS_SERVER_{variable}": text})


def test_every_wrong_variable_is_named():
    with pytest.raises(ConfigError, match=r"FACETS_SERVER_PORT must be <= 65535.*FACETS_SERVER_DRAIN_S must be >= 0"):
        load_config(None, {"FACETS_SERVER_PORT": "70000", "FACETS_SERVER_DRAIN_S": "-1"})


def test_the_environment_says_yes_and_no_where_a_boolean_is_meant():
    config = load_config(
        None, {"FACETS_SERVER_ENGINE_SNAPSHOT_ON_CLOSE": "no", "FACETS_SERVER_ENGINE_STORED_CODE": "fp16"}
    )
    assert (config.engine.snapshot_on_close, config.engine.stored_code) == (False, "fp16")
    with pytest.raises(ConfigError, match="FACETS_SERVER_ENGINE_BACKGROUND must be a boolean"):
        load_config(None, {"FACETS_SERVER_ENGINE_BACKGROUND": "perhaps"})


def test_a_pair_of_settings_may_come_from_two_places():
    environment = {"FACETS_SERVER_SECURITY_TLS_KEY": "k", "FACETS_SERVER_SECURITY_TLS_CERTIFICATE": "c"}
    assert load_config(None, environment).security.tls_key == Path("k")


def test_no_more_hits_are_announced_than_the_engine_finds():
    assert LimitsConfig().max_top_k == MAX_TOP_K
    with pytest.raises(
        ConfigError, match=f"FACETS_SERVER_LIMITS_MAX_TOP_K must be <= {MAX_TOP_K}, got {MAX_TOP_K + 1}"
    ):
        load_config(None, {"FACETS_SERVER_LIMITS_MAX_TOP_K": str(MAX_TOP_K + 1)})


def test_a_missing_file_is_reported(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(tmp_path / "none.toml")


def test_the_documented_file_loads_and_shows_the_defaults(tmp_path):
    document = (Path(__file__).parents[4] / "docs" / "run" / "server.md").read_text()
    file = tmp_path / "server.toml"
    file.write_text(document.split("```toml\n")[1].split("```")[0])
    config = load_config(file)
    defaults = ServerConfig()
    assert (config.limits, config.batcher, config.admission) == (defaults.limits, defaults.batcher, defaults.admission)
    assert (config.port, config.drain_s, config.data_dir) == (defaults.port, defaults.drain_s, defaults.data_dir)
