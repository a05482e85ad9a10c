"""Execution on Spark: reads on one exported snapshot, staging, and the counts of both.

DataFrames and SQL only, so that one code runs on a classic session and through Spark Connect.
"""
