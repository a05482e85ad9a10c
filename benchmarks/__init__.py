"""How fast it is: `python -m benchmarks` measures, `make bench` calls it."""
