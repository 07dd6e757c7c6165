"""The process behind ``make serve``."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import wait_until

SCRIPTS = Path(__file__).parents[3] / "scripts"
PARENT = """
import sys
sys.path.insert(0, sys.argv[1])
import serve
server = serve.start_server([sys.executable, "-c", "import signal; print('up', flush=True); signal.pause()"])
print(server.pid, flush=True)
server.wait()
"""


def has_ended(pid: int) -> bool:
    """Also when nobody has asked for its status yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of the end of their parent")
def test_the_server_ends_when_the_script_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT, str(SCRIPTS)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        lines = {parent.stdout.readline().strip(), parent.stdout.readline().strip()}
        assert "up" in lines
        (pid,) = (int(line) for line in lines - {"up"})
        assert not has_ended(pid)
        parent.send_signal(signal.SIGKILL)
        wait_until(lambda: has_ended(pid))
