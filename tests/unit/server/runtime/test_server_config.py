from pathlib import Path

import pytest
from facets_server.runtime.config import ServerConfig, load_config

from facets.errors import ConfigError


def loaded(tmp_path, text):
    file = tmp_path / "server.toml"
    file.write_text(text)
    return load_config(file)


def test_flags_win_over_environment_and_environment_over_file(tmp_path):
    file = tmp_path / "server.toml"
    file.write_text(
        'port = 1\ndrain_s = 7\ndata_dir = "from-file"\nmodels = ["a"]\n'
        "[limits]\nmax_text_bytes = 5\n[admission]\nmax_streams = 3\n[engine]\nsnapshot_every_writes = 9\n"
    )
    environment = {
        "FACETS_SERVER_PORT": "2",
        "FACETS_SERVER_LIMITS_MAX_TEXT_BYTES": "6",
        "FACETS_SERVER_MODELS": "b, c",
        "FACETS_SERVER_ENGINE_SNAPSHOT_ON_CLOSE": "no",
        "FACETS_SERVER_SECURITY_TLS_KEY": "k",
        "FACETS_SERVER_SECURITY_TLS_CERTIFICATE": "c",
        "OTHER": "x",
    }
    config = load_config(file, environment, {"port": 3, "host": None, "http.port": 4})
    assert (config.port, config.host, config.http.port) == (3, ServerConfig().host, 4)
    assert (config.limits.max_text_bytes, config.admission.max_streams, config.models) == (6, 3, ("b", "c"))
    assert (config.data_dir, config.drain_s, config.security.tls_key) == (Path("from-file"), 7.0, Path("k"))
    assert (config.engine.snapshot_every_writes, config.engine.snapshot_on_close) == (9, False)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("port = 70000", "port must be less than or equal to 65535"),
        ("prt = 1", "prt is no setting: did you mean port"),
        ("zzz = 1", "zzz is no setting; there are host, port"),
        ("[limits]\nmax_text_bytes = 0", "limits.max_text_bytes must be greater than or equal to 1, got 0"),
        ("[engine]\nsnapshot_on_close = 'no'", 'engine.snapshot_on_close must be a valid boolean, got "no"'),
        ("port = ", "is not TOML"),
        ("limits = 3", "limits must be a table of settings"),
        ("[security]\ntls_certificate = 'c'", "security.tls_key must be given together with tls_certificate"),
        ("[security]\ntls_client_ca = 'c'", "security.tls_certificate must be given with tls_client_ca"),
        ("models = 'm'", "models must be a list"),
        ("port = 8080\n[http]\nport = 8080", "port must be another one than http.port, got 8080"),
        ("data_dir = 5", "data_dir must be a path, got 5"),
        (r'data_dir = "a\u0000b"', "data_dir must be a path without NUL"),
        ('host = ""\nsocket = ""', 'host must have at least 1 character, got ""; socket must not be empty'),
        ("socket = 's'\n[http]\nport = 0", 'socket must be unset where http.port is on, got "s"'),
        ("[limits]\nmax_message_bytes = 3000000000", "limits.max_message_bytes must be less than 2147483648"),
        ("[admission]\nmax_queued_requests = 3000000000", "admission.max_queued_requests must be less than or equal"),
        ("[limits]\nmax_texts_per_request = 3000000", "limits.max_texts_per_request must be less than or equal"),
        (
            f"[admission]\nmax_memory_bytes = {10**23}",
            "admission.max_memory_bytes must be less than 9223372036854775808",
        ),
        (
            "[http]\ncors_origins = ['https://a.org/']",
            'http.cors_origins.0 must match pattern .*, got "https://a.org/"',
        ),
        ("drain_s = 1e10", "drain_s must be less than or equal to 604800"),
        ("[http]\nread_timeout_s = 1e300", "http.read_timeout_s must be less than or equal to 604800"),
    ],
)
def test_bad_files_are_reported_in_one_sentence(tmp_path, text, match):
    with pytest.raises(ConfigError, match=match):
        loaded(tmp_path, text)


@pytest.mark.parametrize(
    ("variables", "match"),
    [
        ({"PORT": "many"}, 'FACETS_SERVER_PORT must be a valid integer, got "many"'),
        ({"PROT": "1"}, "FACETS_SERVER_PROT names no setting"),
        ({"MODELS": " "}, "FACETS_SERVER_MODELS is empty"),
        ({"PORT": "70000", "DRAIN_S": "-1"}, "FACETS_SERVER_PORT must be .*FACETS_SERVER_DRAIN_S must be "),
        ({"ENGINE_BACKGROUND": "perhaps"}, "FACETS_SERVER_ENGINE_BACKGROUND must be a valid boolean"),
    ],
)
def test_bad_variables_are_all_named(variables, match):
    with pytest.raises(ConfigError, match=match):
        load_config(None, {f"FACETS_SERVER_{name}": value for name, value in variables.items()})


def test_a_missing_file_is_reported(tmp_path):
    with pytest.raises(ConfigError, match="cannot read the configuration"):
        load_config(tmp_path / "none.toml")


def test_the_documented_file_loads_and_shows_the_defaults(tmp_path):
    document = (Path(__file__).parents[4] / "docs" / "run" / "server.md").read_text()
    config = loaded(tmp_path, document.split("```toml\n")[1].split("```")[0])
    defaults = ServerConfig()
    assert (config.limits, config.batcher, config.admission) == (defaults.limits, defaults.batcher, defaults.admission)
    assert (config.port, config.drain_s, config.data_dir) == (defaults.port, defaults.drain_s, defaults.data_dir)
