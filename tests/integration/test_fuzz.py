"""The short form of ``python -m benchmarks.fuzz``: in every run other calls."""

import random

from server_process import ServerProcess, make_toy_checkpoint

from benchmarks.fuzz.run import Fuzzer


def test_no_call_is_the_server_s_fault_or_hangs(tmp_path) -> None:
    seed = random.SystemRandom().randrange(1_000_000)
    with ServerProcess(tmp_path / "data", make_toy_checkpoint(tmp_path / "model")) as server:
        fuzzer = Fuzzer(server.target, seed=seed, timeout_s=120.0, pid=server.process.pid)
        try:
            assert fuzzer.run(300, seconds=60) > 0
        finally:
            fuzzer.close()
        assert fuzzer.failures == [], f"seed {seed}"
        assert server.process.poll() is None
    assert fuzzer.sent
