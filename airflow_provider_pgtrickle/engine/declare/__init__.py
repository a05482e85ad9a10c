"""Declaring stream tables: create, replace, alter, drop.

Each function works inside the caller's transaction and leaves committing to it, so nothing is ever
half-declared; the refreshes between those transactions belong to `client`.
"""
