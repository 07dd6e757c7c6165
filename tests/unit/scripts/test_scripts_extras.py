"""Every extra has a check."""

import tomllib

from test_scripts_setup import ROOT, script

LEFT_OUT = {"all", "dev", "gpu", "mteb"}


def test_every_extra_is_checked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = set(project["optional-dependencies"]) - LEFT_OUT
    module = script("check_extras")
    assert {*module.LIGHT, *module.HEAVY_EXTRAS} == {*extras, "client", "library"}
