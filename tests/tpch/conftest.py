from tests.oracle.fixtures import installed, new_case, oracle_connection

__all__ = ["installed", "new_case", "oracle_connection"]
