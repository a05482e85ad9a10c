"""How fast it is: `python -m tests.benchmarks` measures, `make bench` calls it."""
