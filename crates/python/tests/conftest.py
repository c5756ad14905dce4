"""Common parts of the tests. Each test has a watchdog: a hang ends the process with all stacks."""

import faulthandler

import pytest


@pytest.fixture(autouse=True)
def watchdog():
    """Ends the process if a test takes longer than two minutes."""
    faulthandler.dump_traceback_later(120, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
