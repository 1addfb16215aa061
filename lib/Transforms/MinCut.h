//===- MinCut.h - Minimum cut of a small directed graph ---------*- C++ -*-===//

#ifndef TRITON_SCAN_LIB_TRANSFORMS_MINCUT_H
#define TRITON_SCAN_LIB_TRANSFORMS_MINCUT_H

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <limits>

namespace mlir::triton::scan {

/// A graph with capacities whose nodes are split into two sides so that the
/// capacities of the edges from the source's side to the sink's are least
/// (Ford and Fulkerson, "Maximal Flow Through a Network", 1956).
class MinCut {
public:
  static constexpr int64_t unbounded = std::numeric_limits<int64_t>::max() / 4;
  static constexpr unsigned source = 0, sink = 1;

  unsigned addNode();
  void addEdge(unsigned from, unsigned to, int64_t capacity);

  struct Cut {
    llvm::BitVector sourceSide;
    int64_t capacity;
  };
  /// Returns a least cut. Uses the capacities up.
  Cut solve();

private:
  struct Edge {
    unsigned to;
    int64_t capacity;
  };
  /// Marks the nodes that the source reaches; returns what a path to the sink
  /// can still carry, after sending it, or 0.
  int64_t augment(llvm::BitVector &reached);

  // Edge e and its reverse e ^ 1 stand side by side.
  llvm::SmallVector<Edge> edges;
  llvm::SmallVector<llvm::SmallVector<unsigned>> edgesOf =
      llvm::SmallVector<llvm::SmallVector<unsigned>>(2);
};

} // namespace mlir::triton::scan

#endif // TRITON_SCAN_LIB_TRANSFORMS_MINCUT_H
