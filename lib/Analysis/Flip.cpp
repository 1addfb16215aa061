//===- Flip.cpp - Scans that stand for tl.flip ----------------------------===//

#include "triton-scan/Analysis/Flip.h"

namespace mlir::triton::scan {

bool isFlip(ScanOp op) {
  return llvm::all_of(op.getCombineOp().front().without_terminator(),
                      [](Operation &inner) {
                        auto call = dyn_cast<ExternElementwiseOp>(inner);
                        return call && call.getLibname() == "triton_scan" &&
                               call.getSymbol() == "triton_scan_flip";
                      }) &&
         !op.getCombineOp().front().without_terminator().empty();
}

} // namespace mlir::triton::scan
