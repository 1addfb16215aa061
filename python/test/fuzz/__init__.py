"""A fuzzer for tt.scan: random layouts, operators and shapes, written as TTGIR, run in ptx_sim."""
