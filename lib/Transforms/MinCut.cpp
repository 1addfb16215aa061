//===- MinCut.cpp - Minimum cut of a small directed graph -----------------===//

#include "MinCut.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir::triton::scan {

unsigned MinCut::addNode() {
  edgesOf.emplace_back();
  return edgesOf.size() - 1;
}

void MinCut::addEdge(unsigned from, unsigned to, int64_t capacity) {
  edgesOf[from].push_back(edges.size());
  edges.push_back({to, capacity});
  edgesOf[to].push_back(edges.size());
  edges.push_back({from, 0});
}

int64_t MinCut::augment(llvm::BitVector &reached) {
  // Breadth first, so that paths are short and their number is bounded.
  llvm::SmallVector<unsigned> queue{source}, edgeTo(edgesOf.size());
  reached.reset();
  reached.set(source);
  for (unsigned i = 0; i < queue.size() && !reached[sink]; ++i)
    for (unsigned e : edgesOf[queue[i]]) {
      unsigned to = edges[e].to;
      if (edges[e].capacity == 0 || reached[to])
        continue;
      reached.set(to);
      edgeTo[to] = e;
      queue.push_back(to);
    }
  if (!reached[sink])
    return 0;

  int64_t flow = unbounded;
  for (unsigned n = sink; n != source; n = edges[edgeTo[n] ^ 1].to)
    flow = std::min(flow, edges[edgeTo[n]].capacity);
  for (unsigned n = sink; n != source; n = edges[edgeTo[n] ^ 1].to) {
    edges[edgeTo[n]].capacity -= flow;
    edges[edgeTo[n] ^ 1].capacity += flow;
  }
  return flow;
}

MinCut::Cut MinCut::solve() {
  Cut cut{llvm::BitVector(edgesOf.size()), 0};
  while (int64_t flow = augment(cut.sourceSide))
    cut.capacity += flow;
  return cut;
}

} // namespace mlir::triton::scan
