"""The device of a setting."""

import pytest
import torch

from facets.devices import compute_device
from facets.errors import ConfigError


def test_auto_is_a_gpu_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert compute_device("auto") == "cuda"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert compute_device("auto") == "cpu"


@pytest.mark.parametrize("name", ["cuda", "cuda:1"])
def test_a_gpu_that_is_not_there_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0 if name == "cuda" else 1)
    with pytest.raises(ConfigError, match=name):
        compute_device(name)


@pytest.mark.parametrize("name", ["", "gpu", "meta", "cuda:x"])
def test_another_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="auto, cpu or cuda"):
        compute_device(name)
