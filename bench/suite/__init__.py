"""The benchmarks of laterd: see bench/README.md."""
