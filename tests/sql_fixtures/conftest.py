from tests.oracle.fixtures import new_case, oracle_connection

__all__ = ["new_case", "oracle_connection"]
