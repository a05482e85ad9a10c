"""The front end turns canonical PostgreSQL text into the operator tree; `pipeline.py` lists its passes in order.

Subqueries are handled while the tree is built. `decorrelate` turns a subquery into a join where both say the same.
PostgreSQL evaluates every other subquery as it is written, and `operators.dependent` differentiates its operator.
"""
