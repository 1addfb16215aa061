//===- ChooseScanLayout.cpp - The cheapest layout for scans in loops ------===//

#include "MinCut.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "triton-scan/Analysis/Flip.h"
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

/// Conversions are not added where a tensor and the kernel's own buffers take
/// more shared memory than this, in bytes: a conversion's scratch memory must
/// not be what makes a kernel not fit. The smallest limit of a target that we
/// compile for is 64 KiB a CTA (AMD's CDNA 3).
constexpr int64_t maxSharedBytes = 64 << 10;

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

/// The ops and variables that one scan can share a layout with, and the values
/// between them.
///
/// Every flexible op and every loop-carried variable is a node, named by the
/// op's first result or by the variable's region argument.
class Component {
public:
  explicit Component(ScanOp scan)
      : type(scan.getInputTypes().front()), frequency(frequencyOf(scan)) {
    addAll(scan->getResult(0));
  }

  /// The node that decides the layout of `value`, or null.
  Value nodeOfDefinition(Value value) const;
  /// The node that decides in which layout `use` wants its value, or null.
  Value nodeOfUse(OpOperand &use) const;

  /// The other layouts from or to which the component is converted already.
  llvm::SetVector<Attribute> neighbouringEncodings() const;

  RankedTensorType type; // of the scan's first operand
  int64_t frequency;     // of the scan
  llvm::SetVector<Value> nodes;
  llvm::SetVector<Value> values;

private:
  bool hasLayout(Value value) const {
    auto tensor = dyn_cast<RankedTensorType>(value.getType());
    return tensor && tensor.getShape() == type.getShape() &&
           tensor.getEncoding() == type.getEncoding();
  }
  SmallVector<Value> valuesAround(Value node) const;
  void addAll(Value first);
};

Value Component::nodeOfDefinition(Value value) const {
  if (!hasLayout(value))
    return Value();
  if (auto arg = dyn_cast<BlockArgument>(value))
    return isa<scf::ForOp>(arg.getOwner()->getParentOp()) ? value : Value();
  Operation *op = value.getDefiningOp();
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return loop.getTiedLoopRegionIterArg(cast<OpResult>(value));
  return isFlexible(op) ? op->getResult(0) : Value();
}

Value Component::nodeOfUse(OpOperand &use) const {
  Operation *op = use.getOwner();
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return loop.getTiedLoopRegionIterArg(&use);
  if (auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
      loop && isa<scf::YieldOp>(op))
    return loop.getRegionIterArg(use.getOperandNumber());
  return isFlexible(op) ? op->getResult(0) : Value();
}

SmallVector<Value> Component::valuesAround(Value node) const {
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
  llvm::erase_if(around, [&](Value value) { return !hasLayout(value); });
  return around;
}

void Component::addAll(Value first) {
  SmallVector<Value> worklist{first};
  while (!worklist.empty()) {
    Value node = worklist.pop_back_val();
    if (!node || !nodes.insert(node))
      continue;
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

llvm::SetVector<Attribute> Component::neighbouringEncodings() const {
  llvm::SetVector<Attribute> encodings;
  for (Value value : values) {
    if (auto conversion = value.getDefiningOp<gpu::ConvertLayoutOp>())
      encodings.insert(conversion.getSrc().getType().getEncoding());
    for (Operation *user : value.getUsers())
      if (auto conversion = dyn_cast<gpu::ConvertLayoutOp>(user))
        encodings.insert(conversion.getType().getEncoding());
  }
  encodings.remove(type.getEncoding());
  return encodings;
}

/// The cheapest split of a component between its layout and another one.
///
/// A least cut of a graph whose source stands for the other layout and whose
/// sink for the present one, where all that is no node has to stay. Scans are
/// charged for the layout they end up in, values for a conversion.
class LayoutSplit {
public:
  LayoutSplit(const Component &component, Attribute other);

  /// What the split saves, in issue slots.
  int64_t saving() const { return costOfStaying - cut.capacity; }
  void apply();

private:
  void addScanCosts(ScanOp scan);
  void addConversionCosts(Value value);

  /// Existing conversions from and to the other layout are its end points.
  bool isFromOther(Value value) const {
    auto conversion = value.getDefiningOp<gpu::ConvertLayoutOp>();
    return conversion && conversion.getSrc().getType().getEncoding() == other;
  }
  bool isToOther(Operation *user) const {
    auto conversion = dyn_cast<gpu::ConvertLayoutOp>(user);
    return conversion && conversion.getType().getEncoding() == other;
  }
  unsigned idOf(Value node) const {
    auto it = ids.find(node);
    return it == ids.end() ? MinCut::sink : it->second;
  }
  unsigned idOfDefinition(Value value) const {
    return isFromOther(value) ? MinCut::source
                              : idOf(component.nodeOfDefinition(value));
  }
  unsigned idOfUse(OpOperand &use) const {
    return isToOther(use.getOwner()) ? MinCut::source
                                     : idOf(component.nodeOfUse(use));
  }

  const Component &component;
  Attribute other;
  MinCut graph;
  llvm::DenseMap<Value, unsigned> ids;
  int64_t costOfStaying = 0;
  MinCut::Cut cut;
};

LayoutSplit::LayoutSplit(const Component &component, Attribute other)
    : component(component), other(other) {
  for (Value node : component.nodes)
    ids[node] = graph.addNode();
  for (Value node : component.nodes)
    if (auto scan = node.getDefiningOp<ScanOp>())
      addScanCosts(scan);
  for (Value value : component.values)
    addConversionCosts(value);
  cut = graph.solve();
}

void LayoutSplit::addScanCosts(ScanOp scan) {
  ScanWork work = {0, 0, 0};
  for (Type elementType : scan.getElementTypes())
    work.wordsPerElement += wordsOf(elementType);
  work.opsPerCombine = std::max<unsigned>(
      llvm::range_size(scan.getCombineOp().front().without_terminator()), 1);

  int64_t frequency = frequencyOf(scan);
  auto costIn = [&](Attribute encoding) {
    RankedTensorType type = component.type;
    LinearLayout layout = registerLayout(type.cloneWithEncoding(encoding));
    work.numRegisters = numRegisters(layout);
    auto runs = planScan(layout, scan.getAxis());
    // A layout that cannot be scanned is left by a conversion and taken again.
    int64_t cost;
    if (!runs)
      cost = 4 * costOfConversion(work.numRegisters, work.wordsPerElement);
    else if (isFlip(scan))
      cost = costOfFlip(*runs, work.numRegisters, work.wordsPerElement);
    else
      cost = costOfScan(*runs, work);
    return frequency * cost;
  };
  int64_t here = costIn(component.type.getEncoding());
  costOfStaying += here;
  graph.addEdge(MinCut::source, idOf(scan->getResult(0)), here);
  graph.addEdge(idOf(scan->getResult(0)), MinCut::sink, costIn(other));
}

void LayoutSplit::addConversionCosts(Value value) {
  Operation *def = value.getDefiningOp();
  if (def && isFreeSource(def))
    return;
  int64_t conversion = costOfConversion(
      numRegisters(registerLayout(component.type)),
      wordsOf(cast<RankedTensorType>(value.getType()).getElementType()));

  // A new conversion has to leave the scan's loop: beside the scan, its passes
  // over shared memory put barriers where the scan has one at most.
  Operation *place = def ? def : &value.getParentBlock()->front();
  int64_t frequency = frequencyOf(place);
  int64_t cost = frequency < component.frequency ? frequency * conversion
                                                 : MinCut::unbounded;
  if (isFromOther(value) ||
      llvm::any_of(value.getUsers(),
                   [&](Operation *user) { return isToOther(user); })) {
    cost = frequency * conversion;
    costOfStaying += cost;
  }

  // Paid once: when the value has the other layout and some use does not, and
  // when some use wants it and the value does not have it.
  unsigned defined = idOfDefinition(value);
  unsigned fromOther = graph.addNode(), toOther = graph.addNode();
  graph.addEdge(defined, fromOther, cost);
  graph.addEdge(toOther, defined, cost);
  for (OpOperand &use : value.getUses()) {
    graph.addEdge(fromOther, idOfUse(use), MinCut::unbounded);
    graph.addEdge(idOfUse(use), toOther, MinCut::unbounded);
  }
}

void LayoutSplit::apply() {
  // Decided before any type changes, because types tell what is a node.
  struct Rewrite {
    Value value;
    bool hasOther;
    SmallVector<OpOperand *> usesOfOther, usesOfThis;
  };
  SmallVector<Rewrite> rewrites;
  for (Value value : component.values) {
    Rewrite rewrite{value, cut.sourceSide[idOfDefinition(value)], {}, {}};
    for (OpOperand &use : value.getUses())
      (cut.sourceSide[idOfUse(use)] ? rewrite.usesOfOther : rewrite.usesOfThis)
          .push_back(&use);
    rewrites.push_back(rewrite);
  }

  for (Rewrite &rewrite : rewrites) {
    Value value = rewrite.value;
    auto thisType = cast<RankedTensorType>(value.getType());
    auto otherType = thisType.cloneWithEncoding(other);
    OpBuilder builder(value.getContext());
    builder.setInsertionPointAfterValue(value);
    auto replace = [](ArrayRef<OpOperand *> uses, Value by) {
      for (OpOperand *use : uses)
        use->set(by);
    };

    if (isFromOther(value)) {
      auto conversion = value.getDefiningOp<gpu::ConvertLayoutOp>();
      replace(rewrite.usesOfOther, conversion.getSrc());
    } else if (rewrite.hasOther) {
      value.setType(otherType);
      if (!rewrite.usesOfThis.empty())
        replace(rewrite.usesOfThis,
                gpu::ConvertLayoutOp::create(builder, value.getLoc(), thisType,
                                             value));
    } else if (Operation *def = value.getDefiningOp();
               def && isFreeSource(def) && !rewrite.usesOfOther.empty()) {
      Operation *clone = builder.clone(*def);
      clone->getResult(0).setType(otherType);
      if (auto constant = dyn_cast<arith::ConstantOp>(clone))
        constant.setValueAttr(cast<SplatElementsAttr>(constant.getValue())
                                  .resizeSplat(otherType));
      replace(rewrite.usesOfOther, clone->getResult(0));
    } else if (llvm::any_of(rewrite.usesOfOther, [&](OpOperand *use) {
                 return !isToOther(use->getOwner());
               })) {
      replace(rewrite.usesOfOther,
              gpu::ConvertLayoutOp::create(builder, value.getLoc(), otherType,
                                           value));
    }
  }
}

/// Returns the size of all shared memory that `module` allocates by name.
int64_t bytesOfBuffers(ModuleOp module) {
  int64_t bits = 0;
  module.walk([&](gpu::LocalAllocOp op) {
    gpu::MemDescType type = op.getType();
    bits += ShapedType::getNumElements(type.getShape()) *
            type.getElementTypeBitWidth();
  });
  return bits / 8;
}

/// Returns the layouts worth a comparison with the one that `component` has.
SmallVector<Attribute> otherEncodings(const Component &component, ScanOp scan) {
  SmallVector<Attribute> encodings(
      component.neighbouringEncodings().takeVector());
  unsigned elementBits = 0;
  for (Type elementType : scan.getElementTypes())
    elementBits = std::max(elementBits, wordsOf(elementType) * wordBits);
  int64_t scratchBytes = component.type.getNumElements() * elementBits / 8;
  if (scratchBytes + bytesOfBuffers(scan->getParentOfType<ModuleOp>()) >
      maxSharedBytes)
    return encodings;
  LinearLayout layout = registerLayout(component.type);
  if (auto better = layoutForScan(layout, scan.getAxis());
      better && *better != layout)
    encodings.push_back(
        gpu::LinearEncodingAttr::get(scan.getContext(), *better));
  return encodings;
}

void chooseLayout(ScanOp scan) {
  Component component(scan);
  std::unique_ptr<LayoutSplit> best;
  for (Attribute encoding : otherEncodings(component, scan)) {
    auto split = std::make_unique<LayoutSplit>(component, encoding);
    if (split->saving() > (best ? best->saving() : 0))
      best = std::move(split);
  }
  if (best)
    best->apply();
}

/// Removes conversions that have become pointless.
void foldConversions(ModuleOp module) {
  module.walk([](gpu::ConvertLayoutOp op) {
    if (op.getSrc().getType() == op.getType())
      op.replaceAllUsesWith(op.getSrc());
    if (op->use_empty())
      op.erase();
  });
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
    if (scans.empty())
      return;
    for (ScanOp scan : scans)
      chooseLayout(scan);
    foldConversions(getOperation());
  }
};

} // namespace

std::unique_ptr<Pass> createChooseScanLayoutPass() {
  return std::make_unique<ChooseScanLayoutPass>();
}

} // namespace mlir::triton::scan
