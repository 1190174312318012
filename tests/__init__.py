"""The tests, the naive versions that serve as their oracles, and the benchmarks."""
