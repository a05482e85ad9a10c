from tests.oracle.fixtures import installed_beside, new_case, oracle_connection

__all__ = ["installed_beside", "new_case", "oracle_connection"]
