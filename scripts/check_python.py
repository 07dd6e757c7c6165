"""Says in one sentence what a Python lacks to make the environment; runs on any Python 3."""

import sys

LOWEST = (3, 11)


def lacking() -> str:
    """Return what is wrong with this Python, or an empty string."""
    if sys.version_info < LOWEST:
        found = "%d.%d" % sys.version_info[:2]
        return "Python 3.11 or newer is needed, %s is %s: make PYTHON=python3.12 ..." % (sys.executable, found)
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        return "Python's venv module is not there: apt-get install python3-venv"
    return ""


if __name__ == "__main__":
    sentence = lacking()
    if sentence:
        sys.stderr.write("facets: %s\n" % sentence)
        sys.exit(1)
