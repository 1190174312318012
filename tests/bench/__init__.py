"""The benchmarks: `make bench`, or `python -m tests.bench`. One module a subject; each yields rows.

Contestants run in turns within one process, the calls alone are timed, and a row holds the medians: on a shared
machine the ratio of two contestants says more than the seconds of either, and differences under 2 times mean little.
The judge runs alone, as a process of its own.
"""
