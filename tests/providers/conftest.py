from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from loopback import LoopbackServer, Scripted, serving


@pytest.fixture
def serve() -> Iterator[Callable[..., LoopbackServer]]:
    """Start loopback servers that answer with the given script."""
    with ExitStack() as stack:

        def start(*script: Scripted) -> LoopbackServer:
            return stack.enter_context(serving(*script))

        yield start
