//===- AmdLaneMoves.cpp - Lane permutations on AMD's vector ALU -----------===//

#include "AmdLaneMoves.h"
#include "BitFields.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "triton/Dialect/TritonGPU/IR/Dialect.h"
#include "llvm/ADT/STLExtras.h"
#include <tuple>

namespace mlir::triton::scan {

static constexpr unsigned rowLanes = 16;
static constexpr unsigned allRowsOrBanks = 0xf;

namespace {
/// Values of dpp_ctrl; to those that end in 0 a distance or a lane is added.
enum DppControl : unsigned {
  QuadPerm = 0x000,
  RowShl = 0x100,
  RowShr = 0x110,
  RowRor = 0x120,
  WaveRol1 = 0x134,
  WaveRor1 = 0x13c,
  RowMirror = 0x140,
  RowHalfMirror = 0x141,
  RowShare = 0x150, // row_newbcast on GFX9
  RowXmask = 0x160
};
} // namespace

static constexpr unsigned quadIdentity = 0b11'10'01'00;

static LaneMove dpp(unsigned control) { return {LaneMove::Dpp, control}; }

AmdLaneMoves::AmdLaneMoves(unsigned lanes, unsigned generation,
                           bool hasRowShare, bool hasSwaps)
    : lanes(lanes), isGfx10Plus(generation >= 10) {
  for (unsigned n = 1; n < rowLanes; ++n)
    fixedMoves.push_back(dpp(RowRor + n));
  fixedMoves.push_back(dpp(RowMirror));
  fixedMoves.push_back(dpp(RowHalfMirror));
  for (unsigned n = 0; hasRowShare && n < rowLanes; ++n)
    fixedMoves.push_back(dpp(RowShare + n));
  for (unsigned n = 1; isGfx10Plus && n < rowLanes; ++n)
    fixedMoves.push_back(dpp(RowXmask + n));
  if (!isGfx10Plus) {
    fixedMoves.push_back(dpp(WaveRol1));
    fixedMoves.push_back(dpp(WaveRor1));
  }
  for (unsigned n = 1; n < rowLanes; ++n) {
    fixedMoves.push_back(dpp(RowShl + n));
    fixedMoves.push_back(dpp(RowShr + n));
  }
  // Lets some rows or banks keep their own value.
  fixedMoves.push_back(dpp(QuadPerm + quadIdentity));
  if (hasSwaps)
    for (LaneMove::Kind kind :
         {LaneMove::Permlane16Swap, LaneMove::Permlane32Swap})
      for (unsigned upper : {0, 1})
        fixedMoves.push_back({kind, upper});
}

std::optional<AmdLaneMoves> AmdLaneMoves::forModule(ModuleOp module,
                                                    unsigned threadsPerWarp) {
  auto target = module->getAttrOfType<StringAttr>(gpu::AttrTargetName);
  StringRef arch = target ? target.getValue() : StringRef();
  // hip:gfx<generation><two hexadecimal digits>
  unsigned generation;
  if (!arch.consume_front("hip:gfx") || arch.size() < 3 ||
      arch.drop_back(2).getAsInteger(10, generation))
    return std::nullopt;
  StringRef model = arch.take_back(2);
  if (generation < 9 || generation > 12 ||
      (generation == 12 && model.front() == '5'))
    return std::nullopt;
  bool isCdna2Plus = generation == 9 && (model == "0a" || model >= "40");
  return AmdLaneMoves(threadsPerWarp, generation,
                      /*hasRowShare=*/generation >= 10 || isCdna2Plus,
                      /*hasSwaps=*/generation == 9 && model == "50");
}

std::optional<unsigned> AmdLaneMoves::sourceOf(const LaneMove &move,
                                               unsigned lane) const {
  unsigned inRow = lane % rowLanes, row = lane - inRow;
  unsigned control = move.control;
  switch (move.kind) {
  case LaneMove::Permlane16:
    return row | (move.control >> inRow * 4 & 15);
  case LaneMove::PermlaneX16:
    return (row ^ rowLanes) | (move.control >> inRow * 4 & 15);
  case LaneMove::Permlane16Swap:
    return control ? lane | 16 : lane & ~16u;
  case LaneMove::Permlane32Swap:
    return control ? lane | 32 : lane & ~32u;
  case LaneMove::Readlane:
    return control;
  case LaneMove::Swizzle:
    return (lane & ~31u) |
           ((((lane & control) | (control >> 5)) ^ (control >> 10)) & 31);
  case LaneMove::Dpp:
    break;
  }
  if (!(move.rowMask >> lane / rowLanes & 1) ||
      !(move.bankMask >> inRow / 4 & 1))
    return std::nullopt;
  unsigned n = control % rowLanes;
  if (control < RowShl)
    return (lane & ~3u) | (control >> (lane & 3) * 2 & 3);
  switch (control) {
  case WaveRol1:
    return (lane + 1) % lanes;
  case WaveRor1:
    return (lane + lanes - 1) % lanes;
  case RowMirror:
    return lane ^ 15;
  case RowHalfMirror:
    return lane ^ 7;
  }
  switch (control - n) {
  case RowShl:
    return inRow + n < rowLanes ? std::optional(lane + n) : std::nullopt;
  case RowShr:
    return inRow >= n ? std::optional(lane - n) : std::nullopt;
  case RowRor:
    return row | ((inRow + rowLanes - n) % rowLanes);
  case RowShare:
    return row | n;
  case RowXmask:
    return lane ^ n;
  }
  llvm_unreachable("unknown dpp_ctrl");
}

bool AmdLaneMoves::makes(const LaneMove &move,
                         const LaneSources &sources) const {
  return llvm::all_of(llvm::seq(lanes), [&](unsigned lane) {
    std::optional<unsigned> source = sourceOf(move, lane);
    return source && (!sources[lane] || *sources[lane] == *source);
  });
}

std::optional<uint64_t> AmdLaneMoves::selectors(const LaneSources &sources,
                                                unsigned bits,
                                                unsigned otherGroup) const {
  unsigned group = 1u << bits, mask = group - 1;
  SmallVector<std::optional<unsigned>> chosen(group);
  for (unsigned lane = 0; lane < lanes; ++lane) {
    if (!sources[lane])
      continue;
    std::optional<unsigned> &own = chosen[lane & mask];
    unsigned wanted = *sources[lane];
    bool isInGroup = (wanted & ~mask) == ((lane & ~mask) ^ otherGroup);
    if (!isInGroup || (own && *own != (wanted & mask)))
      return std::nullopt;
    own = wanted & mask;
  }
  // Lanes whose value is not used do as the others, where those agree.
  auto used = llvm::find_if(chosen, [](auto c) { return c.has_value(); });
  unsigned other = used == chosen.end() ? 0 : **used;
  uint64_t result = 0;
  for (auto [i, selector] : llvm::enumerate(chosen))
    result |= uint64_t(selector.value_or(other)) << i * bits;
  return result;
}

std::optional<LaneMove>
AmdLaneMoves::findOne(const LaneSources &sources) const {
  if (auto control = selectors(sources, 2))
    return dpp(QuadPerm + *control);
  for (const LaneMove &move : fixedMoves)
    if (makes(move, sources))
      return move;
  if (isGfx10Plus) {
    if (auto control = selectors(sources, 4))
      return LaneMove{LaneMove::Permlane16, *control};
    if (auto control = selectors(sources, 4, rowLanes))
      return LaneMove{LaneMove::PermlaneX16, *control};
  }
  auto used = llvm::find_if(sources, [](auto s) { return s.has_value(); });
  LaneMove broadcast{LaneMove::Readlane, used == sources.end() ? 0 : **used};
  if (makes(broadcast, sources))
    return broadcast;
  return std::nullopt;
}

std::optional<LaneMovePlan>
AmdLaneMoves::findTwo(const LaneSources &sources) const {
  // The kinds are numbered by preference. Both directions find the same ones,
  // as each kind has all of its mirror images.
  std::optional<LaneMovePlan> best;
  auto consider = [&](const LaneSources &wanted, LaneMovePlan::Join join,
                      const LaneMove &second) {
    auto rank = [](const LaneMovePlan &plan) {
      return std::tuple(plan.first.kind, plan.second.kind, plan.join);
    };
    std::optional<LaneMove> first = findOne(wanted);
    if (!first)
      return;
    LaneMovePlan plan{*first, join, second};
    if (!best || rank(plan) < rank(*best))
      best = plan;
  };

  for (const LaneMove &second : fixedMoves) {
    // What the first would have to bring to the lanes that the second reads.
    LaneSources wanted(lanes);
    bool isConsistent = true;
    for (unsigned lane = 0; lane < lanes && isConsistent; ++lane) {
      std::optional<unsigned> read = sourceOf(second, lane);
      isConsistent = read.has_value();
      if (!isConsistent || !sources[lane])
        continue;
      isConsistent = !wanted[*read] || wanted[*read] == sources[lane];
      wanted[*read] = sources[lane];
    }
    if (isConsistent)
      consider(wanted, LaneMovePlan::Then, second);
  }

  for (LaneMove second : fixedMoves) {
    if (second.kind != LaneMove::Dpp)
      continue;
    // Let it write the rows or banks in which it harms no lane.
    unsigned rows = allRowsOrBanks, banks = allRowsOrBanks;
    for (unsigned lane = 0; lane < lanes; ++lane) {
      std::optional<unsigned> read = sourceOf(second, lane);
      if (!read || !sources[lane] || *read == *sources[lane])
        continue;
      rows &= ~(1u << lane / rowLanes);
      banks &= ~(1u << lane % rowLanes / 4);
    }
    for (auto [rowMask, bankMask] :
         {std::pair(allRowsOrBanks, banks), std::pair(rows, allRowsOrBanks)}) {
      second.rowMask = rowMask;
      second.bankMask = bankMask;
      LaneSources rest = sources;
      for (unsigned lane = 0; lane < lanes; ++lane)
        if (sourceOf(second, lane))
          rest[lane].reset();
      if (rest != sources)
        consider(rest, LaneMovePlan::Over, second);
    }
  }
  return best;
}

std::optional<LaneMove>
AmdLaneMoves::findSwizzle(const LaneSources &sources) const {
  // Each bit of the source is kept, inverted, 0 or 1.
  unsigned andMask = 0, orMask = 0, xorMask = 0;
  for (unsigned bit = 1; bit < 32; bit <<= 1) {
    bool isSeen[2][2] = {};
    for (unsigned lane = 0; lane < lanes; ++lane)
      if (sources[lane])
        isSeen[(lane & bit) != 0][(*sources[lane] & bit) != 0] = true;
    bool mayBeZero = !isSeen[0][1] && !isSeen[1][1];
    bool mayBeOne = !isSeen[0][0] && !isSeen[1][0];
    bool mayBeKept = !isSeen[0][1] && !isSeen[1][0];
    if (mayBeZero)
      continue;
    if (mayBeOne)
      orMask |= bit;
    else
      andMask |= bit;
    if (!mayBeOne && !mayBeKept)
      xorMask |= bit;
  }
  LaneMove move{LaneMove::Swizzle, andMask | orMask << 5 | xorMask << 10};
  if (makes(move, sources))
    return move;
  return std::nullopt;
}

std::optional<LaneMovePlan>
AmdLaneMoves::find(const LaneSources &sources) const {
  if (auto move = findOne(sources))
    return LaneMovePlan{*move};
  if (auto plan = findTwo(sources))
    return plan;
  if (auto move = findSwizzle(sources))
    return LaneMovePlan{*move};
  return std::nullopt;
}

static Value callIntrinsic(OpBuilder &builder, Location loc, StringRef name,
                           ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(builder, loc, builder.getI32Type(),
                                       builder.getStringAttr(name), operands)
      .getResult(0);
}

/// Emits a move that writes every lane.
static Value emitMove(OpBuilder &builder, Location loc, const LaneMove &move,
                      Value word) {
  auto constant = [&](uint64_t value) {
    return constantI32(builder, loc, static_cast<uint32_t>(value));
  };
  auto flag = [&](bool value) -> Value {
    return LLVM::ConstantOp::create(builder, loc, builder.getI1Type(),
                                    builder.getBoolAttr(value));
  };
  // No lane lacks a source. Bound control then tells LLVM that it need not
  // keep the old value, and that it may move within the instruction that uses
  // the result.
  constexpr bool fetchInactive = false, boundControl = true;
  Type i32 = word.getType();
  switch (move.kind) {
  case LaneMove::Dpp:
    return ROCDL::DPPUpdateOp::create(
        builder, loc, i32, word, word, static_cast<unsigned>(move.control),
        move.rowMask, move.bankMask, boundControl);
  case LaneMove::Permlane16:
  case LaneMove::PermlaneX16:
    return callIntrinsic(
        builder, loc,
        move.kind == LaneMove::Permlane16 ? "llvm.amdgcn.permlane16"
                                          : "llvm.amdgcn.permlanex16",
        {word, word, constant(move.control), constant(move.control >> 32),
         flag(fetchInactive), flag(boundControl)});
  case LaneMove::Permlane16Swap:
  case LaneMove::Permlane32Swap: {
    auto pair =
        LLVM::LLVMStructType::getLiteral(builder.getContext(), {i32, i32});
    Value both =
        move.kind == LaneMove::Permlane16Swap
            ? Value(ROCDL::Permlane16SwapOp::create(
                  builder, loc, pair, word, word, fetchInactive, boundControl))
            : Value(ROCDL::Permlane32SwapOp::create(
                  builder, loc, pair, word, word, fetchInactive, boundControl));
    return LLVM::ExtractValueOp::create(builder, loc, both, move.control);
  }
  case LaneMove::Readlane:
    return ROCDL::ReadlaneOp::create(builder, loc, i32, word,
                                     constant(move.control));
  case LaneMove::Swizzle:
    return ROCDL::DsSwizzleOp::create(builder, loc, i32, word,
                                      constant(move.control));
  }
  llvm_unreachable("unknown kind of move");
}

Value AmdLaneMoves::emit(OpBuilder &builder, Location loc,
                         const LaneMovePlan &plan, Value word) {
  Value first = emitMove(builder, loc, plan.first, word);
  if (plan.join == LaneMovePlan::None)
    return first;
  if (plan.join == LaneMovePlan::Then)
    return emitMove(builder, loc, plan.second, first);
  // Lanes without a source keep what the first has brought.
  const LaneMove &second = plan.second;
  return ROCDL::DPPUpdateOp::create(builder, loc, word.getType(), first, word,
                                    static_cast<unsigned>(second.control),
                                    second.rowMask, second.bankMask,
                                    /*boundCtrl=*/false);
}

} // namespace mlir::triton::scan
