"""What AMD's cross-lane instructions do, one lane at a time, as the instruction set guides say it.

Sources: AMD's guides "Vega", "CDNA 3", "RDNA 3" and "RDNA 4" (the tables of DPP_CTRL, the sections
on DPP, DS_SWIZZLE_B32, V_PERMLANE16_B32, V_PERMLANEX16_B32, V_READLANE_B32), and LLVM's
"User Guide for AMDGPU Backend" for what its intrinsics make of them and for permlane16.swap and
permlane32.swap.  Nothing here is taken from lib/Conversion/AmdLaneMoves.cpp, which it checks.

All lanes are active.  Values are arrays of shape (waves, lanes).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

ROW, BANK = 16, 4  # lanes


class IllegalMove(Exception):
    """The target has no such instruction, or the encoding is reserved."""


@dataclass(frozen=True)
class Wave:
    """A wavefront of `lanes` lanes of the target `arch`, such as gfx942."""

    arch: str
    lanes: int

    @property
    def generation(self) -> int:
        return int(self.arch.removeprefix("gfx")[:-2])

    @property
    def has_newbcast(self) -> bool:
        return self.arch in ("gfx90a", "gfx940", "gfx941", "gfx942", "gfx950")

    def require(self, condition: bool, what: str) -> None:
        if not condition:
            raise IllegalMove(f"{self.arch} has no {what}")

    def dpp_source(self, control: int, lane: int) -> int | None:
        """Return the lane that `lane` reads under a dpp_ctrl, None if there is no such lane."""
        gfx9, gfx10 = self.generation == 9, self.generation >= 10
        row = lane // ROW * ROW
        if control <= 0xFF:  # quad_perm: two bits for each lane of four
            return lane // 4 * 4 + (control >> 2 * (lane % 4)) % 4
        if 0x101 <= control <= 0x10F:  # row_shl: data move to lower lanes
            source = lane + control - 0x100
            return source if source < row + ROW else None
        if 0x111 <= control <= 0x11F:  # row_shr: data move to higher lanes
            source = lane - (control - 0x110)
            return source if source >= row else None
        if 0x121 <= control <= 0x12F:  # row_ror: as row_shr, around the row
            return row + (lane - row - (control - 0x120)) % ROW
        if control in (0x130, 0x134, 0x138, 0x13C):
            self.require(gfx9, f"shift of a wavefront, dpp_ctrl {control:#x}")
            step = 1 if control < 0x138 else -1
            wraps = control in (0x134, 0x13C)  # wave_rol:1, wave_ror:1
            source = lane + step
            return source % self.lanes if wraps or 0 <= source < self.lanes else None
        if control == 0x140:  # row_mirror
            return row + ROW - 1 - (lane - row)
        if control == 0x141:  # row_half_mirror
            return lane // 8 * 8 + 7 - lane % 8
        if control in (0x142, 0x143):
            self.require(gfx9, f"broadcast to other rows, dpp_ctrl {control:#x}")
            if control == 0x143:  # row_bcast:31
                return 31 if lane >= 32 else None
            return row - 1 if row else None  # row_bcast:15
        if 0x150 <= control <= 0x15F:  # row_newbcast, row_share
            self.require(gfx10 or self.has_newbcast, f"row_share, dpp_ctrl {control:#x}")
            return row + control - 0x150
        if 0x160 <= control <= 0x16F:  # row_xmask
            self.require(gfx10, f"row_xmask, dpp_ctrl {control:#x}")
            return row + ((lane - row) ^ (control - 0x160))
        raise IllegalMove(f"dpp_ctrl {control:#x} is reserved")

    def update_dpp(
        self,
        old: np.ndarray,
        source: np.ndarray,
        control: int,
        row_mask: int,
        bank_mask: int,
        bound_control: bool,
    ) -> np.ndarray:
        """A move with DPP into a register that holds `old`."""
        result = old.copy()
        for lane in range(self.lanes):
            row, bank = lane // ROW, lane % ROW // BANK
            if not (row_mask >> row & 1 and bank_mask >> bank & 1):
                continue  # not written
            read = self.dpp_source(control, lane)
            if read is not None:
                result[:, lane] = source[:, read]
            elif bound_control:
                result[:, lane] = 0
        return result

    def gather(self, source: np.ndarray, read: Callable[[int], int]) -> np.ndarray:
        """Each lane reads from the one that `read` names."""
        return source[:, [read(lane) for lane in range(self.lanes)]]

    def permlane16(
        self, source: np.ndarray, low: int, high: int, other_row: bool = False
    ) -> np.ndarray:
        """v_permlane16; with `other_row` v_permlanex16, which reads the other row of two."""
        self.require(self.generation >= 10, "v_permlane16")

        def read(lane: int) -> int:
            row, within = divmod(lane, ROW)
            word = low if within < 8 else high
            return (row ^ other_row) * ROW + (word >> 4 * (within % 8)) % ROW

        return self.gather(source, read)

    def permlane_swap(self, a: np.ndarray, b: np.ndarray, width: int) -> list[np.ndarray]:
        """v_permlane16_swap or v_permlane32_swap: every second group of `width` lanes of the first
        register changes places with the one before it of the second."""
        self.require(self.arch == "gfx950", f"v_permlane{width}_swap")
        a, b = a.copy(), b.copy()
        for start in range(0, self.lanes, 2 * width):
            even, odd = slice(start, start + width), slice(start + width, start + 2 * width)
            a[:, odd], b[:, even] = b[:, even].copy(), a[:, odd].copy()
        return [a, b]

    def readlane(self, source: np.ndarray, lane: int) -> np.ndarray:
        return self.gather(source, lambda _: lane)

    def swizzle(self, source: np.ndarray, offset: int) -> np.ndarray:
        """ds_swizzle in its bit mask mode."""
        if offset >> 15:
            raise IllegalMove(f"ds_swizzle's mode of offset {offset:#x} is not known")
        and_mask, or_mask, xor_mask = offset & 31, offset >> 5 & 31, offset >> 10 & 31

        def read(lane: int) -> int:
            return lane // 32 * 32 + (((lane % 32 & and_mask) | or_mask) ^ xor_mask)

        return self.gather(source, read)
