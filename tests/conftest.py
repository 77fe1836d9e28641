"""Settings for every test."""

import signal

from hypothesis import settings

# A property is about results, not about time: a busy machine must not make a test fail.
settings.register_profile("tacit", deadline=None)
settings.load_profile("tacit")

# A shell starts background jobs deaf to Ctrl-C, and they pass that on to what they start. Commands
# under test are to hear it, however the tests were started.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
