"""The garbage collector in a run of many cases."""

from __future__ import annotations

import gc


class Heap:
    """Keeps Python's garbage collector from walking through a suite's cases again and again, for a tenth of a run.

    Cases and items are made in one go and live as long as the run. While they are made the collector rests; what
    is there then is frozen. A collector that somebody has turned off stays off, and objects that somebody else has
    frozen stay frozen.
    """

    def __init__(self) -> None:
        self._rests = False
        self._is_frozen = False

    def rest(self) -> None:
        """Collect nothing from now on."""
        if gc.isenabled():
            gc.disable()
            self._rests = True

    def go_on(self) -> None:
        """Collect again, but nothing that is there now."""
        if not self._rests:
            return
        if gc.get_freeze_count() == 0:
            gc.freeze()
            self._is_frozen = True
        gc.enable()
        self._rests = False

    def release(self) -> None:
        """Leave everything as it was found."""
        if self._is_frozen:
            gc.unfreeze()
            self._is_frozen = False
        if self._rests:
            gc.enable()
            self._rests = False
