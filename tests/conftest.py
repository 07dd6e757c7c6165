"""What every test run needs. Standard library only: the client's tests run without the rest installed."""

import signal

# Started in the background by a shell, pytest inherits an ignored SIGINT and so would every process it starts:
# the tests of Ctrl-C would wait for ever.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
