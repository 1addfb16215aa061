//===- ScanPlan.cpp - How a layout splits a scan into runs ----------------===//

#include "triton-scan/Analysis/ScanPlan.h"
#include "triton-scan/Compat.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::triton::scan {

llvm::StringRef dimNameOf(Owner owner) {
  switch (owner) {
  case Owner::Register:
    return "register";
  case Owner::Lane:
    return "lane";
  case Owner::Warp:
    return "warp";
  case Owner::Block:
    return "block";
  }
  llvm_unreachable("unknown owner");
}

namespace {
struct AxisBit {
  Owner owner;
  unsigned index;
};
} // namespace

LinearLayout registerLayout(RankedTensorType type) {
  return linearLayoutOf(type).removeZeroBasesAlongDim(
      StringAttr::get(type.getContext(), dimNameOf(Owner::Register)));
}

unsigned numRegisters(const LinearLayout &layout) {
  MLIRContext *ctx = (*layout.getInDimNames().begin()).getContext();
  return layout.getInDimSize(StringAttr::get(ctx, dimNameOf(Owner::Register)));
}

StringAttr axisDimOf(MLIRContext *ctx, unsigned axis) {
  return StringAttr::get(ctx, "dim" + llvm::Twine(axis));
}

/// Returns the owner of each bit of the axis coordinate, finest first.
static std::optional<llvm::SmallVector<AxisBit>>
findOwners(const LinearLayout &layout, StringAttr axisDim) {
  MLIRContext *ctx = axisDim.getContext();
  int axis = layout.getOutDimIndex(axisDim);
  llvm::SmallVector<std::optional<AxisBit>> owners(
      layout.getOutDimSizeLog2(axisDim));

  for (Owner owner :
       {Owner::Register, Owner::Lane, Owner::Warp, Owner::Block}) {
    StringAttr inDim = StringAttr::get(ctx, dimNameOf(owner));
    for (int i = 0, e = layout.getInDimSizeLog2(inDim); i < e; ++i) {
      llvm::ArrayRef<int32_t> basis = layout.getBasis(inDim, i);
      if (basis[axis] == 0)
        continue;
      bool movesOtherDims =
          llvm::count_if(basis, [](int32_t c) { return c != 0; }) > 1;
      if (movesOtherDims || !llvm::isPowerOf2_32(basis[axis]))
        return std::nullopt;
      std::optional<AxisBit> &bit = owners[llvm::Log2_32(basis[axis])];
      if (bit)
        return std::nullopt;
      bit = AxisBit{owner, static_cast<unsigned>(i)};
    }
  }

  llvm::SmallVector<AxisBit> bits;
  for (const std::optional<AxisBit> &bit : owners) {
    if (!bit)
      return std::nullopt;
    bits.push_back(*bit);
  }
  return bits;
}

std::optional<llvm::SmallVector<Run>> planScan(const LinearLayout &layout,
                                               unsigned axis) {
  MLIRContext *ctx = (*layout.getOutDimNames().begin()).getContext();
  std::optional<llvm::SmallVector<AxisBit>> bits =
      findOwners(layout, axisDimOf(ctx, axis));
  if (!bits)
    return std::nullopt;

  llvm::SmallVector<Run> runs;
  for (AxisBit bit : *bits) {
    if (runs.empty() || runs.back().owner != bit.owner)
      runs.push_back(Run{bit.owner, {}});
    runs.back().bits.push_back(bit.index);
  }
  return runs;
}

void describe(Diagnostic &remark, unsigned axis, RankedTensorType type,
              llvm::ArrayRef<Run> runs) {
  remark << " along axis " << axis << " of " << type
         << "; axis bits, finest first:";
  for (const Run &run : runs)
    remark << " " << run.bits.size() << " " << dimNameOf(run.owner);
  if (runs.empty())
    remark << " none";
}

} // namespace mlir::triton::scan
