// The scan suite's rows with CUB's BlockScan: a block's items stay in registers
// and are scanned ROUNDS times.  Items of a thread are contiguous along the
// scan.  A reverse scan is the same block scan over mirrored indices: logical
// item j of a block is its element N - 1 - j.
//
// nvcc -O3 -std=c++17 -arch=sm_90 -DROUNDS=64 --shared -Xcompiler -fPIC -o
// libcub_scan.so cub.cu
#include <cub/cub.cuh>

struct Affine {
  float a, x;
};

struct Compose {
  __device__ Affine operator()(const Affine &first, const Affine &then) const {
    return {then.a * first.a, then.a * first.x + then.x};
  }
};

template <int Threads, int Items>
__device__ size_t elementOf(int item, bool reverse) {
  int logical = threadIdx.x * Items + item;
  int inBlock = reverse ? Threads * Items - 1 - logical : logical;
  return size_t(blockIdx.x) * (Threads * Items) + inBlock;
}

template <int Threads, int Items, cub::BlockScanAlgorithm Algorithm,
          bool Reverse>
__global__ void __launch_bounds__(Threads)
    sums(const float *x, float *z, float scale) {
  using Scan = cub::BlockScan<float, Threads, Algorithm>;
  __shared__ typename Scan::TempStorage storage;
  float items[Items];
#pragma unroll
  for (int i = 0; i < Items; ++i)
    items[i] = x[elementOf<Threads, Items>(i, Reverse)];
  for (int round = 0; round < ROUNDS; ++round) {
    Scan(storage).InclusiveSum(items, items);
#pragma unroll
    for (int i = 0; i < Items; ++i)
      items[i] *= scale;
    // The storage is used again.
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < Items; ++i)
    z[elementOf<Threads, Items>(i, Reverse)] = items[i];
}

template <int Threads, int Items, cub::BlockScanAlgorithm Algorithm,
          bool Reverse>
__global__ void __launch_bounds__(Threads)
    pairs(const float *a, const float *x, float *z) {
  using Scan = cub::BlockScan<Affine, Threads, Algorithm>;
  __shared__ typename Scan::TempStorage storage;
  Affine items[Items], scanned[Items];
#pragma unroll
  for (int i = 0; i < Items; ++i) {
    size_t at = elementOf<Threads, Items>(i, Reverse);
    items[i] = {a[at], x[at]};
  }
  for (int round = 0; round < ROUNDS; ++round) {
    Scan(storage).InclusiveScan(items, scanned, Compose());
#pragma unroll
    for (int i = 0; i < Items; ++i)
      items[i] = {items[i].a * 0.999f, scanned[i].x};
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < Items; ++i)
    z[elementOf<Threads, Items>(i, Reverse)] = items[i].x;
}

struct Launch {
  const float *a, *x;
  float *z, scale;
  int blocks;
  bool reverse;
  cudaStream_t stream;
};

template <int Threads, int Items, cub::BlockScanAlgorithm Algorithm>
void launchSums(const Launch &l) {
  if (l.reverse)
    sums<Threads, Items, Algorithm, true>
        <<<l.blocks, Threads, 0, l.stream>>>(l.x, l.z, l.scale);
  else
    sums<Threads, Items, Algorithm, false>
        <<<l.blocks, Threads, 0, l.stream>>>(l.x, l.z, l.scale);
}

template <int Threads, int Items, cub::BlockScanAlgorithm Algorithm>
void launchPairs(const Launch &l) {
  if (l.reverse)
    pairs<Threads, Items, Algorithm, true>
        <<<l.blocks, Threads, 0, l.stream>>>(l.a, l.x, l.z);
  else
    pairs<Threads, Items, Algorithm, false>
        <<<l.blocks, Threads, 0, l.stream>>>(l.a, l.x, l.z);
}

struct Entry {
  int pair, threads, items, algorithm;
  void (*launch)(const Launch &);
};

// Algorithms by the order of their names in contenders.py.
#define ROW(PAIR, FUNCTION, THREADS, ITEMS)                                    \
  {PAIR, THREADS, ITEMS, 0,                                                    \
   FUNCTION<THREADS, ITEMS, cub::BLOCK_SCAN_WARP_SCANS>},                      \
      {PAIR, THREADS, ITEMS, 1,                                                \
       FUNCTION<THREADS, ITEMS, cub::BLOCK_SCAN_RAKING>},                      \
  {                                                                            \
    PAIR, THREADS, ITEMS, 2,                                                   \
        FUNCTION<THREADS, ITEMS, cub::BLOCK_SCAN_RAKING_MEMOIZE>               \
  }
static const Entry entries[] = {
    ROW(0, launchSums, 32, 4),   ROW(0, launchSums, 32, 8),
    ROW(0, launchSums, 32, 32),  ROW(0, launchSums, 128, 8),
    ROW(0, launchSums, 256, 4),  ROW(0, launchSums, 128, 32),
    ROW(0, launchSums, 256, 16), ROW(0, launchSums, 256, 32),
    ROW(1, launchPairs, 32, 8),  ROW(1, launchPairs, 128, 8),
    ROW(1, launchPairs, 256, 16)};

// Launches one kernel on arrays of blocks * threads * items floats; does not
// synchronise. Returns 0, a cudaError_t, or -1 if there is no such row.
extern "C" int cub_scan(int pair, int threads, int items, int algorithm,
                        int reverse, float scale, const float *a,
                        const float *x, float *z, int blocks, void *stream) {
  for (const Entry &entry : entries)
    if (entry.pair == pair && entry.threads == threads &&
        entry.items == items && entry.algorithm == algorithm) {
      entry.launch({a, x, z, scale, blocks, reverse != 0,
                    static_cast<cudaStream_t>(stream)});
      return cudaGetLastError();
    }
  return -1;
}

extern "C" int cub_version() { return CUB_VERSION; }
