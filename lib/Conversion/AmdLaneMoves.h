//===- AmdLaneMoves.h - Lane permutations on AMD's vector ALU ---*- C++ -*-===//
//
// Which instructions let each lane of a wavefront read another lane's register
// without ds_bpermute, which takes an address and goes through the LDS unit.
//
// Sources: the sections on DPP, on DS_SWIZZLE and on V_PERMLANE* of AMD's
// instruction set guides "Vega", "CDNA 3" and "RDNA 3", and LLVM's "User Guide
// for AMDGPU Backend" on llvm.amdgcn.update.dpp and llvm.amdgcn.permlane*.
//
//===----------------------------------------------------------------------===//

#ifndef TRITON_SCAN_LIB_CONVERSION_AMDLANEMOVES_H
#define TRITON_SCAN_LIB_CONVERSION_AMDLANEMOVES_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include <optional>

namespace mlir::triton::scan {

/// For each lane of a wavefront the lane that it reads from, or nothing where
/// the value is not used.
using LaneSources = SmallVector<std::optional<unsigned>, 64>;

/// An instruction that moves a 32-bit register between lanes.
struct LaneMove {
  enum Kind {
    Dpp,            ///< the modifier of that name, here on a move
    Permlane16,     ///< any permutation of a row of 16 lanes
    PermlaneX16,    ///< the same, read from the other row of a pair
    Permlane16Swap, ///< the even or the odd rows, to both rows of a pair
    Permlane32Swap, ///< the lower or the upper 32 lanes, to both
    Readlane,       ///< one lane, to a scalar register
    Swizzle         ///< within 32 lanes, by the LDS unit, without an address
  };
  Kind kind;
  /// Dpp: dpp_ctrl. Permlane: a selector of 4 bits for each lane of a row.
  /// Swap: is it the odd rows or upper lanes? Readlane: the lane. Swizzle: the
  /// offset.
  uint64_t control;
  /// The rows of 16 lanes, and the banks of 4 lanes in all of them, that a Dpp
  /// writes.
  unsigned rowMask = 0xf, bankMask = 0xf;
};

/// How a permutation is made.
struct LaneMovePlan {
  enum Join {
    None, ///< there is one move
    Then, ///< the second reads what the first has written
    Over  ///< both read the same, and the second writes over the first
  };
  LaneMove first;
  Join join = None;
  LaneMove second = {};

  unsigned numMoves() const { return join == None ? 1 : 2; }
};

/// The moves of one target.
///
/// A plan takes one move of the vector ALU, else two of them, else a swizzle.
/// In every plan each lane, used or not, ends up with some lane's value, as
/// long as all lanes are active. For that, row shifts only write over
/// something; rotations and broadcasts within a row stand alone.
///
/// Counting lanes from the other end turns every move into one of the table
/// again, so that both directions of a scan take the same number of moves of
/// each kind. GFX9's row_bcast, which only goes upwards, is left out for it.
class AmdLaneMoves {
public:
  /// Returns nullopt if the module's `ttg.target` names no AMD target whose
  /// moves are known: GFX9 to GFX12, without GFX12.5.
  static std::optional<AmdLaneMoves> forModule(ModuleOp module,
                                               unsigned threadsPerWarp);

  /// Returns how to move the lanes so, or nullopt: it takes ds_bpermute.
  std::optional<LaneMovePlan> find(const LaneSources &sources) const;

  /// Emits the moves of a word of type i32.
  static Value emit(OpBuilder &builder, Location loc, const LaneMovePlan &plan,
                    Value word);

private:
  AmdLaneMoves(unsigned lanes, unsigned generation, bool hasRowShare,
               bool hasSwaps);

  /// Returns the lane that `lane` reads from, nullopt if it is not written.
  std::optional<unsigned> sourceOf(const LaneMove &move, unsigned lane) const;

  /// Does the move serve every lane that is used, and write all the others?
  bool makes(const LaneMove &move, const LaneSources &sources) const;

  std::optional<LaneMove> findOne(const LaneSources &sources) const;
  std::optional<LaneMovePlan> findTwo(const LaneSources &sources) const;

  /// Returns the selectors, of so many bits, by which the lanes of a group pick
  /// one of the group's, or of the group whose number differs by `otherGroup`;
  /// nullopt unless all groups need the same.
  std::optional<uint64_t> selectors(const LaneSources &sources, unsigned bits,
                                    unsigned otherGroup = 0) const;
  std::optional<LaneMove> findSwizzle(const LaneSources &sources) const;

  unsigned lanes;
  bool isGfx10Plus;
  /// The moves that do not depend on the permutation.
  SmallVector<LaneMove> fixedMoves;
};

} // namespace mlir::triton::scan

#endif // TRITON_SCAN_LIB_CONVERSION_AMDLANEMOVES_H
