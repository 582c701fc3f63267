"""The benchmarks of bench/run, a module each."""
