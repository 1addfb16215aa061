"""The errors the simulator raises, all subclasses of PtxSimError."""


class PtxSimError(Exception):
    """A fault; its message names the PTX line, its text and the source line where known."""


class PtxUnsupported(PtxSimError):
    """An instruction, modifier, operand or directive that the simulator does not know."""


class PtxMemoryError(PtxSimError):
    """Out of bounds, misaligned, read-only or never-written memory."""


class PtxRaceError(PtxSimError):
    """Two warps touched the same shared bytes, one writing, with no barrier in between."""


class PtxSyncError(PtxSimError):
    """A barrier or warp-synchronous instruction that its threads do not all reach, or a
    shuffle that uses the value of a lane that does not take part."""
