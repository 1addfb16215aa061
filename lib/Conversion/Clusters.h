//===- Clusters.h - Scans and flips that cross CTAs -------------*- C++ -*-===//

#ifndef TRITON_SCAN_CONVERSION_CLUSTERS_H
#define TRITON_SCAN_CONVERSION_CLUSTERS_H

#include "mlir/IR/Builders.h"
#include "triton-scan/Analysis/ScanPlan.h"

namespace mlir::triton::scan {

/// Does any run join blocks of different CTAs?
bool crossesBlocks(ArrayRef<Run> runs);

/// To be called for an op that crosses CTAs. Triton's barriers of a cluster
/// have to be in a kernel: where `op` is in another function, clears
/// `noinline` of all functions, so that the inliner, which the pipeline runs
/// after the lowering, moves everything into the kernel.
void allowInlining(Operation *op);

/// Emits the index of this thread's CTA in its cluster, an i32. For NVIDIA.
Value clusterBlockId(OpBuilder &builder, Location loc);

} // namespace mlir::triton::scan

#endif // TRITON_SCAN_CONVERSION_CLUSTERS_H
