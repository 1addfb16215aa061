//===- ChooseScanLayout.cpp - The cheapest layout for scans in loops ------===//

#include "MinCut.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "triton-scan/Analysis/ScanCost.h"
#include "triton-scan/Transforms/Passes.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "triton/Dialect/TritonGPU/IR/Dialect.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::triton::scan {
namespace {

/// A loop whose trip count is unknown is taken to run this often.
constexpr int64_t assumedTripCount = 8;

/// Larger tensors are left alone, in bytes: the scratch memory of a conversion
/// must not be what makes a kernel exceed the shared memory of its CTA.
constexpr int64_t maxTensorBytes = 32 << 10;

constexpr unsigned wordBits = 32;

unsigned wordsOf(Type elementType) {
  unsigned bits =
      isa<PointerType>(elementType) ? 64 : elementType.getIntOrFloatBitWidth();
  return llvm::divideCeil(bits, wordBits);
}

/// Returns how often `op` runs for each run of its function.
int64_t frequencyOf(Operation *op) {
  int64_t frequency = 1;
  for (Operation *parent = op->getParentOp(); parent;
       parent = parent->getParentOp()) {
    if (!isa<scf::ForOp, scf::WhileOp>(parent))
      continue;
    auto loop = dyn_cast<scf::ForOp>(parent);
    std::optional<APInt> trips =
        loop ? loop.getStaticTripCount() : std::nullopt;
    int64_t count = trips ? trips->getLimitedValue(1 << 16) : assumedTripCount;
    frequency = std::min<int64_t>(frequency * count, 1 << 30);
  }
  return frequency;
}

/// Can this op be given any layout for nothing, once for each layout?
bool isFreeSource(Operation *op) {
  return isa<SplatOp>(op) ||
         (isa<arith::ConstantOp>(op) &&
          isa<SplatElementsAttr>(cast<arith::ConstantOp>(op).getValue()));
}

/// Does this op work on any layout, as long as all its tensors have the same?
///
/// Not by asking for OpTrait::Elementwise: what identifies a trait depends on
/// the compiler, and an extension's need not be the one that built Triton.
bool isFlexible(Operation *op) {
  if (op->getNumRegions() != 0)
    return isa<ScanOp>(op);
  if (op->getNumResults() == 0 || isa<arith::ConstantOp>(op))
    return false;
  return isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) ||
         isa<AddPtrOp, BitcastOp, ClampFOp, FpToFpOp, IntToPtrOp, MulhiUIOp,
             PreciseDivFOp, PreciseSqrtOp, PtrToIntOp>(op);
}

/// Splits what surrounds one scan between its layout and a better one.
///
/// Every flexible op and every loop-carried variable is a node of a graph whose
/// source side takes the better layout, and whose sink side stays. A node is
/// named by the op's first result or by the variable's region argument; all
/// that has to keep its layout is the sink itself. Scans are charged for the
/// layout they end up in, values for a conversion next to their definition.
class LayoutSplit {
public:
  LayoutSplit(RankedTensorType current, Attribute better)
      : current(current), better(better) {}

  /// Adds the component of `scan`, finds the cheapest split and applies it.
  void run(ScanOp scan);

private:
  bool hasCurrentLayout(Type type) const {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getShape() == current.getShape() &&
           tensor.getEncoding() == current.getEncoding();
  }

  /// The name of the node that decides the layout of `value`, or null.
  Value nodeOfDefinition(Value value) const;
  /// The name of the node that decides in which layout `use` wants its value.
  Value nodeOfUse(OpOperand &use) const;
  /// All values that share a node's layout or feed it.
  SmallVector<Value> valuesAround(Value node) const;

  void addComponent(Value node);
  void addScanCosts(ScanOp scan, unsigned node);
  void addConversionCosts(Value value);
  void apply(const llvm::BitVector &takesBetter);

  unsigned idOf(Value node) const {
    return node ? ids.lookup(node) : MinCut::sink;
  }

  RankedTensorType current;
  Attribute better;
  int64_t scanFrequency = 1;
  MinCut graph;
  llvm::MapVector<Value, unsigned> ids;
  llvm::SetVector<Value> values;
};

Value LayoutSplit::nodeOfDefinition(Value value) const {
  if (!hasCurrentLayout(value.getType()))
    return Value();
  if (auto arg = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(arg.getOwner()->getParentOp());
    return loop ? value : Value();
  }
  Operation *op = value.getDefiningOp();
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return loop.getTiedLoopRegionIterArg(cast<OpResult>(value));
  return isFlexible(op) ? op->getResult(0) : Value();
}

Value LayoutSplit::nodeOfUse(OpOperand &use) const {
  Operation *op = use.getOwner();
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return loop.getTiedLoopRegionIterArg(&use);
  if (auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
      loop && isa<scf::YieldOp>(op))
    return loop.getRegionIterArg(use.getOperandNumber());
  return isFlexible(op) ? op->getResult(0) : Value();
}

SmallVector<Value> LayoutSplit::valuesAround(Value node) const {
  SmallVector<Value> around;
  if (auto arg = dyn_cast<BlockArgument>(node)) {
    auto loop = cast<scf::ForOp>(arg.getOwner()->getParentOp());
    around = {node, loop.getTiedLoopInit(arg)->get(),
              loop.getTiedLoopYieldedValue(arg)->get(),
              loop.getTiedLoopResult(arg)};
  } else {
    Operation *op = node.getDefiningOp();
    llvm::append_range(around, op->getOperands());
    llvm::append_range(around, op->getResults());
  }
  llvm::erase_if(around,
                 [&](Value v) { return !hasCurrentLayout(v.getType()); });
  return around;
}

void LayoutSplit::addComponent(Value first) {
  SmallVector<Value> worklist{first};
  while (!worklist.empty()) {
    Value node = worklist.pop_back_val();
    if (!node || ids.contains(node))
      continue;
    ids[node] = graph.addNode();
    for (Value value : valuesAround(node)) {
      values.insert(value);
      worklist.push_back(nodeOfDefinition(value));
      // A constant is no reason for its users to share a layout.
      if (Operation *def = value.getDefiningOp(); def && isFreeSource(def))
        continue;
      for (OpOperand &use : value.getUses())
        worklist.push_back(nodeOfUse(use));
    }
  }
}

void LayoutSplit::addScanCosts(ScanOp scan, unsigned node) {
  auto costIn = [&](Attribute encoding) -> int64_t {
    LinearLayout layout = registerLayout(current.cloneWithEncoding(encoding));
    auto runs = planScan(layout, scan.getAxis());
    if (!runs) // Has to be converted anyway.
      return MinCut::unbounded >> 31;
    unsigned words = 0;
    for (Type elementType : scan.getElementTypes())
      words += wordsOf(elementType);
    unsigned ops = llvm::range_size(scan.getCombineOp().front()) - 1;
    return costOfScan(*runs, {numRegisters(layout), words, std::max(ops, 1u)});
  };
  int64_t frequency = frequencyOf(scan);
  graph.addEdge(MinCut::source, node,
                frequency * costIn(current.getEncoding()));
  graph.addEdge(node, MinCut::sink, frequency * costIn(better));
}

void LayoutSplit::addConversionCosts(Value value) {
  Operation *def = value.getDefiningOp();
  if (def && isFreeSource(def))
    return;
  unsigned registers = gpu::getUniqueElemsPerThread(current);
  auto elementType = cast<RankedTensorType>(value.getType()).getElementType();
  Operation *place = def ? def : &value.getParentBlock()->front();
  int64_t frequency = frequencyOf(place);
  // Only conversions that leave the scan's loop: beside it, their passes over
  // shared memory put barriers where a scan by shuffles has one at most.
  int64_t cost =
      frequency < scanFrequency
          ? frequency * costOfConversion(registers, wordsOf(elementType))
          : MinCut::unbounded;

  // Paid once: when the value has the better layout and some use does not, and
  // when some use wants it and the value does not have it.
  unsigned defined = idOf(nodeOfDefinition(value));
  unsigned fromBetter = graph.addNode(), toBetter = graph.addNode();
  graph.addEdge(defined, fromBetter, cost);
  graph.addEdge(toBetter, defined, cost);
  for (OpOperand &use : value.getUses()) {
    unsigned wanted = idOf(nodeOfUse(use));
    graph.addEdge(fromBetter, wanted, MinCut::unbounded);
    graph.addEdge(wanted, toBetter, MinCut::unbounded);
  }
}

void LayoutSplit::apply(const llvm::BitVector &takesBetter) {
  auto isBetter = [&](Value node) { return takesBetter[idOf(node)]; };

  // Decided before any type changes, because types tell what is a node.
  struct Rewrite {
    Value value;
    bool isBetter;
    SmallVector<OpOperand *> otherUses;
  };
  SmallVector<Rewrite> rewrites;
  for (Value value : values) {
    Rewrite rewrite{value, isBetter(nodeOfDefinition(value)), {}};
    for (OpOperand &use : value.getUses())
      if (isBetter(nodeOfUse(use)) != rewrite.isBetter)
        rewrite.otherUses.push_back(&use);
    rewrites.push_back(rewrite);
  }

  for (Rewrite &rewrite : rewrites) {
    Value value = rewrite.value;
    auto oldType = cast<RankedTensorType>(value.getType());
    auto newType = oldType.cloneWithEncoding(better);
    if (rewrite.isBetter)
      value.setType(newType);
    if (rewrite.otherUses.empty())
      continue;

    OpBuilder builder(value.getContext());
    builder.setInsertionPointAfterValue(value);
    Operation *def = value.getDefiningOp();
    Value converted;
    if (def && isFreeSource(def)) {
      Operation *clone = builder.clone(*def);
      clone->getResult(0).setType(newType);
      if (auto constant = dyn_cast<arith::ConstantOp>(clone))
        constant.setValueAttr(
            cast<SplatElementsAttr>(constant.getValue()).resizeSplat(newType));
      converted = clone->getResult(0);
    } else {
      converted = gpu::ConvertLayoutOp::create(
          builder, value.getLoc(), rewrite.isBetter ? oldType : newType, value);
    }
    for (OpOperand *use : rewrite.otherUses)
      use->set(converted);
  }
}

void LayoutSplit::run(ScanOp scan) {
  scanFrequency = frequencyOf(scan);
  addComponent(scan->getResult(0));
  for (auto [node, id] : ids)
    if (auto other = node.getDefiningOp<ScanOp>())
      addScanCosts(other, id);
  for (Value value : values)
    addConversionCosts(value);
  llvm::BitVector takesBetter = graph.solve();
  apply(takesBetter);
}

/// Returns the encoding in which `scan` costs least, or null if that is no
/// better than the one it has.
Attribute findBetterEncoding(ScanOp scan) {
  MLIRContext *ctx = scan.getContext();
  RankedTensorType type = scan.getInputTypes().front();
  unsigned elementBits = 0;
  for (Type elementType : scan.getElementTypes())
    elementBits = std::max(elementBits, wordsOf(elementType) * wordBits);
  if (type.getNumElements() * elementBits / 8 > maxTensorBytes)
    return Attribute();

  LinearLayout layout = registerLayout(type);
  std::optional<LinearLayout> better = layoutForScan(layout, scan.getAxis());
  if (!better || *better == layout)
    return Attribute();
  return gpu::LinearEncodingAttr::get(ctx, *better);
}

struct ChooseScanLayoutPass
    : PassWrapper<ChooseScanLayoutPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ChooseScanLayoutPass)

  StringRef getArgument() const override { return "choose-scan-layout"; }
  StringRef getDescription() const override {
    return "give scans and what surrounds them the cheapest layout";
  }

  void runOnOperation() override {
    SmallVector<ScanOp> scans;
    getOperation().walk([&](ScanOp op) { scans.push_back(op); });
    for (ScanOp scan : scans)
      if (Attribute better = findBetterEncoding(scan))
        LayoutSplit(scan.getInputTypes().front(), better).run(scan);
  }
};

} // namespace

std::unique_ptr<Pass> createChooseScanLayoutPass() {
  return std::make_unique<ChooseScanLayoutPass>();
}

} // namespace mlir::triton::scan
