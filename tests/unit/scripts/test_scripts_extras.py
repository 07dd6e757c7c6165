"""Every extra has a check."""

import tomllib

from test_scripts_setup import ROOT, script

LEFT_OUT = {"all", "dev", "gpu", "mteb"}


def test_every_extra_is_checked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = set(project["optional-dependencies"]) - LEFT_OUT
    assert set(script("check_extras").EXTRAS) == {*extras, "client", "library"}
