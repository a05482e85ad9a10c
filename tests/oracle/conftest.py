from tests.oracle.fixtures import new_case, new_case15, oracle_connection, oracle_connection15

__all__ = ["new_case", "new_case15", "oracle_connection", "oracle_connection15"]
