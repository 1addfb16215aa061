//===- AbiSelfTest.cpp - Do these headers describe that libtriton.so? -----===//
//
// The extension is compiled against LLVM headers that are near libtriton's, not
// the same. This pass shows on a module that the difference does not matter:
//
// * reading: it writes the module in MLIR's generic form with its own small
//   printer, which reaches everything through the accessors, iterators, casts
//   and containers that the headers inline, and compares with the text that
//   libtriton's printer gives for the same module;
// * writing: it builds operations through the headers' builders, which store
//   properties and attributes, and compares what libtriton prints for them and
//   whether it verifies them;
// * passing: containers and numbers that cross the boundary in both directions.
//
// Whatever the printer does not know is an error, so that a module cannot be
// half compared. python/build_helpers/abi_selftest.mlir is the module that the
// build uses.
//
//===----------------------------------------------------------------------===//

#include "Passes.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/RegionUtils.h"
#include "triton/Conversion/TritonGPUToLLVM/TargetInfoBase.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "triton/Dialect/TritonGPU/IR/Dialect.h"
#include "triton/Dialect/TritonGPU/IR/LinearLayoutConversions.h"
#include "triton/Tools/LinearLayout.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"

using namespace mlir;
namespace tt = mlir::triton;
namespace ttg = mlir::triton::gpu;

namespace {

/// Collects mismatches; only the first is reported.
struct Verdict {
  std::string mismatch;

  bool ok() const { return mismatch.empty(); }

  void fail(const Twine &text) {
    if (ok())
      mismatch = text.str();
  }

  /// Requires two texts to be equal and names the first line that is not.
  void expectSame(StringRef what, StringRef ours, StringRef theirs) {
    if (ours == theirs)
      return;
    while (true) {
      auto [ourLine, ourRest] = ours.split('\n');
      auto [theirLine, theirRest] = theirs.split('\n');
      if (ourLine != theirLine || (ourRest.empty() && theirRest.empty())) {
        fail(what + ": the headers give `" + ourLine.trim() +
             "`, libtriton gives `" + theirLine.trim() + "`");
        return;
      }
      ours = ourRest;
      theirs = theirRest;
    }
  }

  void expect(bool condition, const Twine &what) {
    if (!condition)
      fail(what);
  }
};

template <typename T> std::string libtritonText(T entity) {
  std::string text;
  llvm::raw_string_ostream os(text);
  entity.print(os);
  return text;
}

std::string libtritonText(Operation *op) {
  std::string text;
  llvm::raw_string_ostream os(text);
  op->print(
      os,
      OpPrintingFlags().printGenericOpForm().useLocalScope().enableDebugInfo());
  return text;
}

/// Writes MLIR's generic form through inline accessors.
class HeaderPrinter {
public:
  HeaderPrinter(raw_ostream &os, Verdict &verdict) : os(os), verdict(verdict) {}

  void printTopLevel(Operation *op) {
    numberResults(op);
    for (Region &region : op->getRegions())
      numberRegion(region);
    printOp(op, /*indent=*/0);
  }

  void printType(Type type);
  void printAttribute(Attribute attr);
  void printLayout(const tt::LinearLayout &layout);

private:
  using Property = std::pair<StringRef, Attribute>;

  void numberResults(Operation *op) {
    if (op->getNumResults() == 0)
      return;
    numbers[op->getResult(0)] = std::to_string(nextValue++);
  }

  /// MLIR numbers a region before those nested in it, and the last of several
  /// nested ones first.
  void numberRegion(Region &region) {
    unsigned nextBlock = 0;
    for (Block &block : region) {
      blocks[&block] = nextBlock++;
      for (BlockArgument arg : block.getArguments())
        numbers[arg] = &block == &region.front()
                           ? "arg" + std::to_string(nextArgument++)
                           : std::to_string(nextValue++);
      for (Operation &op : block)
        numberResults(&op);
    }
    SmallVector<Region *> nested;
    for (Operation &op : region.getOps())
      for (Region &inner : op.getRegions())
        nested.push_back(&inner);
    for (Region *inner : llvm::reverse(nested))
      numberRegion(*inner);
  }

  void printValue(Value value) {
    if (auto result = dyn_cast<OpResult>(value)) {
      Operation *op = result.getOwner();
      os << '%' << numbers.lookup(op->getResult(0));
      if (op->getNumResults() > 1)
        os << '#' << result.getResultNumber();
      return;
    }
    os << '%' << numbers.lookup(value);
  }

  template <typename Range, typename Fn>
  void list(Range &&range, Fn &&each, StringRef separator = ", ") {
    bool first = true;
    for (auto &&element : range) {
      if (!first)
        os << separator;
      first = false;
      each(element);
    }
  }

  template <typename Range> void numberList(const Range &range) {
    os << '[';
    list(range, [&](auto number) { os << number; });
    os << ']';
  }

  void printString(StringRef text) {
    os << '"';
    for (char c : text) {
      if (!isprint(c) || c == '"' || c == '\\')
        verdict.fail("no rule to print the string '" + text + "'");
      os << c;
    }
    os << '"';
  }

  void printKey(StringRef key) {
    bool bare = llvm::all_of(key, [](char c) {
      return isalnum(c) || c == '_' || c == '.' || c == '$';
    });
    if (bare)
      os << key;
    else
      printString(key);
  }

  void printEntries(ArrayRef<NamedAttribute> entries) {
    os << '{';
    list(entries, [&](NamedAttribute entry) {
      printKey(entry.getName().getValue());
      if (isa<UnitAttr>(entry.getValue()))
        return;
      os << " = ";
      printAttribute(entry.getValue());
    });
    os << '}';
  }

  void printLocation(Location loc);
  void printElements(DenseElementsAttr attr);
  void printCga(ttg::CGAEncodingAttr cga);
  void properties(Operation *op, SmallVectorImpl<NamedAttribute> &entries);
  void printBlock(Block &block, bool isEntry, unsigned indent);
  void printOp(Operation *op, unsigned indent);

  raw_ostream &os;
  Verdict &verdict;
  unsigned nextValue = 0;
  unsigned nextArgument = 0;
  llvm::DenseMap<Value, std::string> numbers;
  llvm::DenseMap<Block *, unsigned> blocks;
};

void HeaderPrinter::printLocation(Location loc) {
  os << " loc(";
  if (auto file = dyn_cast<FileLineColLoc>(loc)) {
    printString(file.getFilename().getValue());
    os << ':' << file.getLine() << ':' << file.getColumn();
  } else if (isa<UnknownLoc>(loc)) {
    os << "unknown";
  } else if (auto name = dyn_cast<NameLoc>(loc)) {
    printString(name.getName().getValue());
    auto child = dyn_cast<FileLineColLoc>(name.getChildLoc());
    if (!child)
      verdict.fail("no rule to print the location " + libtritonText(loc));
    else {
      os << '(';
      printString(child.getFilename().getValue());
      os << ':' << child.getLine() << ':' << child.getColumn() << ')';
    }
  } else {
    verdict.fail("no rule to print the location " +
                 libtritonText(LocationAttr(loc)));
  }
  os << ')';
}

void HeaderPrinter::printLayout(const tt::LinearLayout &layout) {
  list(layout.getBases(), [&](const auto &entry) {
    os << entry.first.getValue() << " = [";
    list(entry.second, [&](const auto &basis) { numberList(basis); });
    os << ']';
  });
}

void HeaderPrinter::printCga(ttg::CGAEncodingAttr cga) {
  const tt::LinearLayout &layout = cga.getLinearLayout();
  for (const auto &[name, bases] : layout.getBases()) {
    if (bases.empty())
      continue;
    os << ", CGALayout = [";
    list(bases, [&](const auto &basis) { numberList(basis); });
    os << ']';
  }
}

void HeaderPrinter::printElements(DenseElementsAttr attr) {
  os << "dense<";
  auto scalars = [&](auto &&print) {
    if (attr.isSplat())
      return print(*attr.value_begin<APInt>());
    os << '[';
    list(attr.getValues<APInt>(), print);
    os << ']';
  };
  Type element = attr.getElementType();
  if (element.isInteger(1))
    scalars([&](const APInt &v) { os << (v.isZero() ? "false" : "true"); });
  else if (element.isInteger())
    scalars([&](const APInt &v) { v.print(os, /*isSigned=*/true); });
  else if (isa<FloatType>(element) && attr.isSplat())
    os << llvm::format("%e", (*attr.value_begin<APFloat>()).convertToDouble());
  else
    verdict.fail("no rule to print the elements of " +
                 libtritonText(Attribute(attr)));
  os << "> : ";
  printType(attr.getType());
}

void HeaderPrinter::printAttribute(Attribute attr) {
  if (auto boolean = dyn_cast<BoolAttr>(attr)) {
    os << (boolean.getValue() ? "true" : "false");
  } else if (auto integer = dyn_cast<IntegerAttr>(attr)) {
    integer.getValue().print(os, /*isSigned=*/true);
    os << " : ";
    printType(integer.getType());
  } else if (auto real = dyn_cast<FloatAttr>(attr)) {
    os << llvm::format("%e", real.getValueAsDouble()) << " : ";
    printType(real.getType());
  } else if (auto string = dyn_cast<StringAttr>(attr)) {
    printString(string.getValue());
  } else if (auto type = dyn_cast<TypeAttr>(attr)) {
    printType(type.getValue());
  } else if (isa<UnitAttr>(attr)) {
    os << "unit";
  } else if (auto array = dyn_cast<ArrayAttr>(attr)) {
    os << '[';
    list(array, [&](Attribute element) { printAttribute(element); });
    os << ']';
  } else if (auto dictionary = dyn_cast<DictionaryAttr>(attr)) {
    printEntries(dictionary.getValue());
  } else if (auto symbol = dyn_cast<FlatSymbolRefAttr>(attr)) {
    os << '@' << symbol.getValue();
  } else if (auto numbers = dyn_cast<DenseI32ArrayAttr>(attr)) {
    os << "array<i32";
    if (!numbers.empty())
      os << ": ";
    list(numbers.asArrayRef(), [&](int32_t number) { os << number; });
    os << '>';
  } else if (auto numbers = dyn_cast<DenseI64ArrayAttr>(attr)) {
    os << "array<i64";
    if (!numbers.empty())
      os << ": ";
    list(numbers.asArrayRef(), [&](int64_t number) { os << number; });
    os << '>';
  } else if (auto elements = dyn_cast<DenseElementsAttr>(attr)) {
    printElements(elements);
  } else if (auto flags = dyn_cast<arith::FastMathFlagsAttr>(attr)) {
    os << "#arith.fastmath<" << arith::stringifyEnum(flags.getValue()) << '>';
  } else if (auto flags = dyn_cast<arith::IntegerOverflowFlagsAttr>(attr)) {
    os << "#arith.overflow<" << arith::stringifyEnum(flags.getValue()) << '>';
  } else if (auto flags = dyn_cast<LLVM::FastmathFlagsAttr>(attr)) {
    os << "#llvm.fastmath<" << LLVM::stringifyEnum(flags.getValue()) << '>';
  } else if (auto kind = dyn_cast<NVVM::ShflKindAttr>(attr)) {
    os << "#nvvm<shfl_kind " << NVVM::stringifyEnum(kind.getValue()) << '>';
  } else if (auto blocked = dyn_cast<ttg::BlockedEncodingAttr>(attr)) {
    os << "#ttg.blocked<{sizePerThread = ";
    numberList(blocked.getSizePerThread());
    os << ", threadsPerWarp = ";
    numberList(blocked.getThreadsPerWarp());
    os << ", warpsPerCTA = ";
    numberList(blocked.getWarpsPerCTA());
    os << ", order = ";
    numberList(blocked.getOrder());
    printCga(blocked.getCGALayout());
    os << "}>";
  } else if (auto slice = dyn_cast<ttg::SliceEncodingAttr>(attr)) {
    os << "#ttg.slice<{dim = " << slice.getDim() << ", parent = ";
    printAttribute(slice.getParent());
    os << "}>";
  } else if (auto mma = dyn_cast<ttg::NvidiaMmaEncodingAttr>(attr)) {
    os << "#ttg.nvidia_mma<{versionMajor = " << mma.getVersionMajor()
       << ", versionMinor = " << mma.getVersionMinor() << ", warpsPerCTA = ";
    numberList(mma.getWarpsPerCTA());
    printCga(mma.getCGALayout());
    os << ", instrShape = ";
    numberList(mma.getInstrShape());
    os << "}>";
  } else if (auto mfma = dyn_cast<ttg::AMDMfmaEncodingAttr>(attr)) {
    os << "#ttg.amd_mfma<{version = " << mfma.getVersion()
       << ", warpsPerCTA = ";
    numberList(mfma.getWarpsPerCTA());
    printCga(mfma.getCGALayout());
    os << ", instrShape = ";
    numberList(mfma.getInstrShape());
    os << ", isTransposed = " << (mfma.getIsTransposed() ? "true" : "false")
       << "}>";
  } else if (auto operand = dyn_cast<ttg::DotOperandEncodingAttr>(attr)) {
    os << "#ttg.dot_op<{opIdx = " << operand.getOpIdx() << ", parent = ";
    printAttribute(operand.getParent());
    if (operand.getKWidth())
      os << ", kWidth = " << operand.getKWidth();
    os << "}>";
  } else if (auto linear = dyn_cast<ttg::LinearEncodingAttr>(attr)) {
    os << "#ttg.linear<{";
    printLayout(cast<ttg::LinearEncodingTrait>(attr).getLinearLayout());
    os << "}>";
  } else if (auto shared = dyn_cast<ttg::SwizzledSharedEncodingAttr>(attr)) {
    os << "#ttg.swizzled_shared<{vec = " << shared.getVec()
       << ", perPhase = " << shared.getPerPhase()
       << ", maxPhase = " << shared.getMaxPhase() << ", order = ";
    numberList(shared.getOrder());
    printCga(shared.getCGALayout());
    os << "}>";
  } else if (isa<ttg::SharedMemorySpaceAttr>(attr)) {
    os << "#ttg.shared_memory";
  } else {
    verdict.fail("no rule to print the attribute " + libtritonText(attr));
  }
}

void HeaderPrinter::printType(Type type) {
  auto shape = [&](ArrayRef<int64_t> sizes) {
    for (int64_t size : sizes)
      os << size << 'x';
  };
  auto types = [&](TypeRange range) {
    list(range, [&](Type t) { printType(t); });
  };
  if (auto integer = dyn_cast<IntegerType>(type)) {
    os << (integer.isSigned()     ? "si"
           : integer.isUnsigned() ? "ui"
                                  : "i")
       << integer.getWidth();
  } else if (isa<IndexType>(type)) {
    os << "index";
  } else if (isa<Float16Type, Float32Type, Float64Type>(type)) {
    os << 'f' << type.getIntOrFloatBitWidth();
  } else if (isa<BFloat16Type>(type)) {
    os << "bf16";
  } else if (auto tensor = dyn_cast<RankedTensorType>(type)) {
    os << "tensor<";
    shape(tensor.getShape());
    printType(tensor.getElementType());
    if (Attribute encoding = tensor.getEncoding()) {
      os << ", ";
      printAttribute(encoding);
    }
    os << '>';
  } else if (auto vector = dyn_cast<VectorType>(type)) {
    os << "vector<";
    shape(vector.getShape());
    printType(vector.getElementType());
    os << '>';
  } else if (auto function = dyn_cast<FunctionType>(type)) {
    os << '(';
    types(function.getInputs());
    os << ") -> ";
    bool bare = function.getNumResults() == 1;
    os << (bare ? "" : "(");
    types(function.getResults());
    os << (bare ? "" : ")");
  } else if (auto pointer = dyn_cast<tt::PointerType>(type)) {
    os << "!tt.ptr<";
    printType(pointer.getPointeeType());
    os << '>';
  } else if (auto memory = dyn_cast<ttg::MemDescType>(type)) {
    os << "!ttg.memdesc<";
    shape(memory.getShape());
    printType(memory.getElementType());
    os << ", ";
    printAttribute(memory.getEncoding());
    os << ", ";
    printAttribute(memory.getMemorySpace());
    if (memory.getMutableMemory())
      os << ", mutable";
    verdict.expect(memory.getAllocShape() == memory.getShape(),
                   "no rule to print the type " + libtritonText(type));
    os << '>';
  } else if (auto pointer = dyn_cast<LLVM::LLVMPointerType>(type)) {
    os << "!llvm.ptr";
    if (pointer.getAddressSpace())
      os << '<' << pointer.getAddressSpace() << '>';
  } else if (auto record = dyn_cast<LLVM::LLVMStructType>(type)) {
    verdict.expect(!record.isIdentified(),
                   "no rule to print the type " + libtritonText(type));
    os << "!llvm.struct<" << (record.isPacked() ? "packed " : "") << '(';
    types(record.getBody());
    os << ")>";
  } else {
    verdict.fail("no rule to print the type " + libtritonText(type));
  }
}

/// The properties by the typed accessors of each operation, sorted by name.
void HeaderPrinter::properties(Operation *op,
                               SmallVectorImpl<NamedAttribute> &entries) {
  Builder b(op->getContext());
  auto add = [&](StringRef name, Attribute value) {
    if (value)
      entries.emplace_back(b.getStringAttr(name), value);
  };
  auto segments = [&](ArrayRef<int32_t> sizes) {
    add("operandSegmentSizes", b.getDenseI32ArrayAttr(sizes));
  };
  auto present = [](Value value) { return value ? 1 : 0; };
  // The accessors whose name ends in Attr are inline and read the property
  // where the headers expect it; the others are libtriton's.
  if (auto scan = dyn_cast<tt::ScanOp>(op)) {
    add("axis", scan.getAxisAttr());
    add("reverse", scan.getReverseAttr());
    verdict.expect(scan.getAxis() == scan.getAxisAttr().getInt() &&
                       scan.getReverse() == scan.getReverseAttr().getValue(),
                   "tt.scan: the accessors disagree");
  } else if (auto reduce = dyn_cast<tt::ReduceOp>(op)) {
    add("axis", reduce.getAxisAttr());
  } else if (auto func = dyn_cast<tt::FuncOp>(op)) {
    add("sym_name", func.getSymNameAttr());
    add("function_type", func.getFunctionTypeAttr());
    add("arg_attrs", func.getArgAttrsAttr());
    add("res_attrs", func.getResAttrsAttr());
    add("sym_visibility", func.getSymVisibilityAttr());
  } else if (auto range = dyn_cast<tt::MakeRangeOp>(op)) {
    add("start", range.getStartAttr());
    add("end", range.getEndAttr());
  } else if (auto expand = dyn_cast<tt::ExpandDimsOp>(op)) {
    add("axis", expand.getAxisAttr());
  } else if (auto load = dyn_cast<tt::LoadOp>(op)) {
    add("cachePolicy", load.getCachePolicyAttr());
    add("isVolatile", load.getIsVolatileAttr());
    segments({1, present(load.getMask()), present(load.getOther())});
  } else if (auto store = dyn_cast<tt::StoreOp>(op)) {
    add("cachePolicy", store.getCachePolicyAttr());
  } else if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    add("value", constant.getValueAttr());
  } else if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
    add("predicate",
        b.getI64IntegerAttr(static_cast<int>(compare.getPredicate())));
  } else if (auto arith = dyn_cast<arith::ArithFastMathInterface>(op)) {
    add("fastmath", arith.getFastMathFlagsAttr());
  } else if (auto arith =
                 dyn_cast<arith::ArithIntegerOverflowFlagsInterface>(op)) {
    add("overflowFlags", arith.getOverflowAttr());
  } else if (auto constant = dyn_cast<LLVM::ConstantOp>(op)) {
    add("value", constant.getValueAttr());
  } else if (auto extract = dyn_cast<LLVM::ExtractValueOp>(op)) {
    add("position", extract.getPositionAttr());
  } else if (auto shuffle = dyn_cast<NVVM::ShflOp>(op)) {
    add("kind", shuffle.getKindAttr());
    add("return_value_and_is_valid", shuffle.getReturnValueAndIsValidAttr());
  } else if (auto convert = dyn_cast<ttg::ConvertLayoutOp>(op)) {
    add("force_warp_shuffle", convert.getForceWarpShuffleAttr());
  } else if (auto alloc = dyn_cast<ttg::LocalAllocOp>(op)) {
    add("alignment", alloc.getAlignmentAttr());
  } else if (auto insert = dyn_cast<LLVM::InsertValueOp>(op)) {
    add("position", insert.getPositionAttr());
  } else if (auto compare = dyn_cast<LLVM::ICmpOp>(op)) {
    add("predicate",
        b.getI64IntegerAttr(static_cast<int>(compare.getPredicate())));
  } else if (auto select = dyn_cast<LLVM::SelectOp>(op)) {
    add("fastmathFlags", select.getFastmathFlagsAttr());
  } else if (auto sum = dyn_cast<LLVM::AddOp>(op)) {
    add("overflowFlags",
        b.getI32IntegerAttr(static_cast<int>(sum.getOverflowFlags())));
  } else if (auto branch = dyn_cast<cf::CondBranchOp>(op)) {
    segments({1, static_cast<int>(branch.getTrueDestOperands().size()),
              static_cast<int>(branch.getFalseDestOperands().size())});
  } else if (op->getPropertiesStorageSize() &&
             !isa<ModuleOp, scf::ForOp, scf::YieldOp>(op)) {
    verdict.fail("no rule to print the properties of " +
                 op->getName().getStringRef());
  }
  llvm::sort(entries, [](NamedAttribute a, NamedAttribute b) {
    return a.getName().getValue() < b.getName().getValue();
  });
}

void HeaderPrinter::printBlock(Block &block, bool isEntry, unsigned indent) {
  if (!isEntry || block.getNumArguments()) {
    os.indent(indent - 2) << "^bb" << blocks.lookup(&block);
    if (block.getNumArguments()) {
      os << '(';
      list(block.getArguments(), [&](BlockArgument arg) {
        printValue(arg);
        os << ": ";
        printType(arg.getType());
        printLocation(arg.getLoc());
      });
      os << ')';
    }
    os << ':';
    if (!isEntry) {
      SmallVector<unsigned> from;
      for (Block *pred : block.getPredecessors())
        from.push_back(blocks.lookup(pred));
      llvm::sort(from);
      if (from.empty())
        os << "  // no predecessors";
      else if (from.size() == 1)
        os << "  // pred: ";
      else
        os << "  // " << from.size() << " preds: ";
      list(from, [&](unsigned number) { os << "^bb" << number; });
    }
    os << '\n';
  }
  for (Operation &op : block) {
    os.indent(indent);
    printOp(&op, indent);
    os << '\n';
  }
}

void HeaderPrinter::printOp(Operation *op, unsigned indent) {
  if (unsigned count = op->getNumResults()) {
    os << '%' << numbers.lookup(op->getResult(0));
    if (count > 1)
      os << ':' << count;
    os << " = ";
  }
  printString(op->getName().getStringRef());
  os << '(';
  list(op->getOperands(), [&](Value operand) { printValue(operand); });
  os << ')';
  if (op->getNumSuccessors()) {
    os << '[';
    list(op->getSuccessors(),
         [&](Block *next) { os << "^bb" << blocks.lookup(next); });
    os << ']';
  }
  SmallVector<NamedAttribute> entries;
  properties(op, entries);
  if (!entries.empty()) {
    os << " <";
    printEntries(entries);
    os << '>';
  }
  if (op->getNumRegions()) {
    os << " (";
    list(op->getRegions(), [&](Region &region) {
      os << "{\n";
      for (Block &block : region)
        printBlock(block, &block == &region.front(), indent + 2);
      os.indent(indent) << '}';
    });
    os << ')';
  }
  ArrayRef<NamedAttribute> discardable =
      op->getDiscardableAttrDictionary().getValue();
  if (!discardable.empty()) {
    os << ' ';
    printEntries(discardable);
  }
  os << " : (";
  list(op->getOperandTypes(), [&](Type type) { printType(type); });
  os << ") -> ";
  bool bare = op->getNumResults() == 1;
  os << (bare ? "" : "(");
  list(op->getResultTypes(), [&](Type type) { printType(type); });
  os << (bare ? "" : ")");
  printLocation(op->getLoc());
}

struct AbiSelfTest : PassWrapper<AbiSelfTest, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(AbiSelfTest)

  StringRef getArgument() const override { return "scan-abi-selftest"; }

  StringRef getDescription() const override {
    return "check that the extension's headers fit libtriton.so";
  }

  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<LLVM::LLVMDialect, NVVM::NVVMDialect>();
  }

  void runOnOperation() override {
    Verdict verdict;
    if (failed(verify(getOperation())))
      verdict.fail("libtriton does not verify the module");
    checkText(getOperation(), "module", verdict);
    checkUses(verdict);
    checkLayouts(verdict);
    checkBuilding(verdict);
    checkPassing(verdict);
    if (verdict.ok())
      return;
    getOperation().emitError("ABI self-test: ") << verdict.mismatch;
    signalPassFailure();
  }

private:
  void checkText(Operation *op, StringRef what, Verdict &verdict);
  void checkUses(Verdict &verdict);
  void checkLayouts(Verdict &verdict);
  void checkBuilding(Verdict &verdict);
  void checkPassing(Verdict &verdict);
};

void AbiSelfTest::checkText(Operation *op, StringRef what, Verdict &verdict) {
  std::string ours;
  llvm::raw_string_ostream os(ours);
  HeaderPrinter(os, verdict).printTopLevel(op);
  verdict.expectSame(what, ours, libtritonText(op));
}

/// The use lists must hold exactly the operands that a walk finds.
void AbiSelfTest::checkUses(Verdict &verdict) {
  llvm::DenseMap<Value, llvm::SmallPtrSet<OpOperand *, 4>> found;
  getOperation().walk([&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands()) {
      found[operand.get()].insert(&operand);
      verdict.expect(operand.getOwner() == op &&
                         &op->getOpOperand(operand.getOperandNumber()) ==
                             &operand,
                     "an operand of " + op->getName().getStringRef() +
                         " does not know its place");
    }
  });
  auto check = [&](Value value) {
    auto operands = found.lookup(value);
    unsigned uses = 0;
    for (OpOperand &use : value.getUses()) {
      ++uses;
      verdict.expect(operands.contains(&use),
                     "a use list holds what is no operand of its value");
    }
    verdict.expect(uses == operands.size(),
                   "a use list and a walk over the operands count " +
                       Twine(uses) + " and " + Twine(operands.size()));
    bool outside = llvm::any_of(value.getUsers(), [&](Operation *user) {
      return user->getBlock() != value.getParentBlock();
    });
    verdict.expect(outside ==
                       value.isUsedOutsideOfBlock(value.getParentBlock()),
                   "isUsedOutsideOfBlock differs");
  };
  getOperation().walk([&](Operation *op) {
    llvm::for_each(op->getResults(), check);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        llvm::for_each(block.getArguments(), check);
  });
}

/// The text of a linear layout, from its inline members.
std::string describe(const tt::LinearLayout &layout) {
  std::string text = "\n";
  llvm::raw_string_ostream os(text);
  auto tuple = [&](ArrayRef<int32_t> basis) {
    os << '(';
    llvm::interleaveComma(basis, os);
    os << ')';
  };
  for (const auto &[name, bases] : layout.getBases()) {
    if (bases.empty()) {
      os << " - " << name.getValue() << " is a size 1 dimension\n";
      continue;
    }
    for (auto [i, basis] : llvm::enumerate(bases)) {
      os << (i ? "   " : " - ") << name.getValue() << '=' << (1u << i)
         << " -> ";
      tuple(basis);
      os << '\n';
    }
  }
  os << "where out dims are: [";
  llvm::interleaveComma(layout.getOutDims(), os, [&](const auto &dim) {
    os << dim.first.getValue() << " (size " << dim.second << ')';
  });
  os << ']';
  return text;
}

/// Layouts that libtriton computes, by value, for every tensor type.
void AbiSelfTest::checkLayouts(Verdict &verdict) {
  getOperation().walk([&](Operation *op) {
    for (Type type : op->getResultTypes()) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (!tensor || !tensor.getEncoding())
        continue;
      tt::LinearLayout layout = ttg::toLinearLayout(tensor);
      verdict.expectSame(libtritonText(type), describe(layout),
                         layout.toString());
      verdict.expect(layout.getTotalOutDimSize() == tensor.getNumElements(),
                     "the layout of " + libtritonText(type) +
                         " has another size");
      // Built here, inverted there, composed there: an identity.
      if (!layout.isInvertible())
        continue;
      tt::LinearLayout rebuilt(layout.getBases(), layout.getOutDims(),
                               /*requireSurjective=*/true);
      verdict.expect(rebuilt == layout, "a rebuilt layout differs");
      tt::LinearLayout identity = rebuilt.compose(rebuilt.invert());
      verdict.expectSame("identity layout", describe(identity),
                         identity.toString());
      for (const auto &[name, bases] : identity.getBases())
        for (const auto &basis : bases)
          verdict.expect(llvm::count_if(basis, [](int32_t b) { return b; }) ==
                             1,
                         "a layout composed with its inverse is no identity");
    }
  });
}

/// Operations built through the headers: libtriton must print and verify them.
void AbiSelfTest::checkBuilding(Verdict &verdict) {
  OwningOpRef<ModuleOp> copy = getOperation().clone();
  tt::ScanOp scan;
  copy->walk([&](tt::ScanOp op) { scan = op; });
  if (!scan)
    return verdict.fail("the self-test's module has no tt.scan");
  auto type = cast<RankedTensorType>(scan.getOperand(0).getType());
  Type element = type.getElementType();
  MLIRContext *context = &getContext();
  IRRewriter b(scan);
  Location loc = NameLoc::get(b.getStringAttr("built"),
                              FileLineColLoc::get(context, "here", 3, 14));
  auto number = [&](int64_t value) -> Value {
    return LLVM::ConstantOp::create(b, loc, b.getI32Type(),
                                    b.getI32IntegerAttr(value));
  };

  // Properties, a region, a reversed copy of what the module has.
  auto built = tt::ScanOp::create(b, loc, ValueRange{scan.getOperand(0)},
                                  scan.getAxis(), !scan.getReverse());
  Block *body =
      b.createBlock(&built.getCombineOp(), {}, {element, element}, {loc, loc});
  Value sum =
      arith::MulIOp::create(b, loc, body->getArgument(0), body->getArgument(1));
  tt::ScanReturnOp::create(b, loc, ValueRange{sum});
  b.setInsertionPoint(scan);

  // What a lowering is made of.
  unsigned registers = ttg::getUniqueElemsPerThread(type);
  auto record = LLVM::LLVMStructType::getLiteral(
      context, SmallVector<Type>(registers, element));
  Value fields = UnrealizedConversionCastOp::create(b, loc, TypeRange{record},
                                                    built.getResult())
                     .getResult(0);
  Value last = LLVM::ExtractValueOp::create(b, loc, fields, registers - 1);
  Value shuffled =
      NVVM::ShflOp::create(b, loc, b.getI32Type(), number(-1), last, number(1),
                           number(31), NVVM::ShflKind::up, UnitAttr());
  Value isSmall = LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::ult,
                                       shuffled, number(7));
  Value chosen = LLVM::SelectOp::create(b, loc, isSmall, shuffled, last);
  Value added = LLVM::AddOp::create(b, loc, chosen, last);
  Value stored =
      LLVM::InsertValueOp::create(b, loc, LLVM::UndefOp::create(b, loc, record),
                                  added, ArrayRef<int64_t>{0});
  Value tensor = UnrealizedConversionCastOp::create(b, loc, TypeRange{type},
                                                    ValueRange{stored})
                     .getResult(0);
  tt::LinearLayout spread = ttg::toLinearLayout(type);
  Attribute linear = ttg::LinearEncodingAttr::get(context, spread);
  ttg::ConvertLayoutOp::create(
      b, loc, RankedTensorType::get(type.getShape(), element, linear), tensor);

  // libtriton calls our rewriter and we call its target, both by vtable.
  auto target = tt::TargetInfoBase::fromModuleOp(*copy);
  target->shuffleIdx(b, loc, added, 5);
  target->shuffleXor(b, loc, added, 16);

  // Wide and negative numbers.
  APInt wide = APInt::getOneBitSet(128, 100) - 1;
  wide.negate();
  arith::ConstantOp::create(b, loc,
                            b.getIntegerAttr(b.getIntegerType(128), wide));

  // Rewriting.
  IRMapping mapping;
  Operation *clone = b.clone(*scan, mapping);
  verdict.expect(mapping.lookup(scan.getResult()[0]) == clone->getResult(0),
                 "an IRMapping that libtriton filled lacks a result");
  b.replaceOp(scan, clone);
  checkText(*copy, "built module", verdict);
  if (failed(verify(*copy)))
    verdict.fail("libtriton does not verify what the headers built");
}

/// Containers that libtriton fills or reads.
void AbiSelfTest::checkPassing(Verdict &verdict) {
  getOperation().walk([&](tt::ScanOp op) {
    llvm::SetVector<Value> captured, expected;
    getUsedValuesDefinedAbove(op.getCombineOp(), captured);
    op.getCombineOp().walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (!op.getCombineOp().isAncestor(operand.getParentRegion()))
          expected.insert(operand);
    });
    verdict.expect(
        captured == expected,
        "getUsedValuesDefinedAbove and a walk find different values");
  });
  // Blocks' arguments by a bit vector, and a DenseMap that grows often.
  Block block;
  Location loc = getOperation().getLoc();
  llvm::DenseMap<Value, unsigned> order;
  llvm::BitVector odd(100);
  for (unsigned i = 0; i < 100; ++i) {
    order[block.addArgument(Builder(&getContext()).getIntegerType(i + 1),
                            loc)] = i;
    odd[i] = i % 2;
  }
  block.eraseArguments(odd);
  verdict.expect(block.getNumArguments() == 50, "eraseArguments(BitVector)");
  for (BlockArgument argument : block.getArguments())
    verdict.expect(
        order.lookup(argument) == 2 * argument.getArgNumber() &&
            argument.getType().isInteger(2 * argument.getArgNumber() + 1),
        "eraseArguments(BitVector) kept another argument");
}

} // namespace

std::unique_ptr<Pass> tt::scan::createAbiSelfTestPass() {
  return std::make_unique<AbiSelfTest>();
}
