"""From canonical PostgreSQL text to the operator tree; `pipeline.py` has the order of its passes.

Subqueries are met while the tree is built: `decorrelate` makes joins of those that say no more than a join; every
other one is evaluated by PostgreSQL as it is written, and `operators.dependent` differentiates what holds it.
"""
