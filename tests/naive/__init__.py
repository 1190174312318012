"""Plain versions of what the handbook builds: oracles of the tests, baselines of the benchmarks."""
