"""TPC-H's data as Arrow tables: numpy throughout, the same bytes for the same scale and seed.

It follows the specification where queries can tell (keys, ranges, dates, correlations) and not in its prose.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tests.benchmarks.tpch import words

FIRST_DAY = 8035  # 1992-01-01, in days since 1970
LAST_ORDER_DAY = 10440  # 1998-08-02
TODAY = 9298  # 1995-06-17
CHUNK = 100_000

Batch = tuple[str, pa.Table]


def rows(table: str, scale: float) -> int:
    base = {"supplier": 10_000, "part": 200_000, "customer": 150_000, "orders": 1_500_000}[table]
    return max(int(base * scale), 10)


def everything(scale: float, seed: int = 1) -> Iterator[Batch]:
    """All tables, in batches of the name and the rows."""
    yield (
        "region",
        pa.table({"r_regionkey": np.arange(5), "r_name": words.REGIONS, "r_comment": words.phrases(8, 152)[:5]}),
    )
    yield (
        "nation",
        pa.table(
            {
                "n_nationkey": np.arange(25),
                "n_name": [name for name, _ in words.NATIONS],
                "n_regionkey": [region for _, region in words.NATIONS],
                "n_comment": words.phrases(8, 152)[:25],
            }
        ),
    )
    for start, stop in _chunks(rows("supplier", scale)):
        yield "supplier", _suppliers(_rng(seed, 1, start), start, stop)
    for start, stop in _chunks(rows("part", scale)):
        yield "part", _parts(_rng(seed, 2, start), start, stop)
        yield "partsupp", _partsupps(_rng(seed, 3, start), start, stop, rows("supplier", scale))
    for start, stop in _chunks(rows("customer", scale)):
        yield "customer", _customers(_rng(seed, 4, start), start, stop)
    for start, stop in _chunks(rows("orders", scale)):
        index = np.arange(start, stop)
        # Keys are sparse: of each 32 only the first 8 are in use, so that new orders find room.
        yield from orders(_rng(seed, 5, start), index // 8 * 32 + index % 8 + 1, scale)


def orders(rng: np.random.Generator, orderkey: np.ndarray, scale: float) -> Iterator[Batch]:
    """The orders of these keys, and their one to seven lines each."""
    count, customers = len(orderkey), rows("customer", scale)
    # A third of the customers never orders anything.
    custkey = rng.integers(0, (customers + 2) // 3 * 2, count)
    custkey = np.minimum(custkey // 2 * 3 + custkey % 2 + 1, customers)
    custkey -= custkey % 3 == 0
    orderdate = rng.integers(FIRST_DAY, LAST_ORDER_DAY + 1, count)
    lines = rng.integers(1, 8, count)
    first = np.concatenate(([0], np.cumsum(lines)[:-1]))
    total = int(lines.sum())

    partkey = rng.integers(1, rows("part", scale) + 1, total)
    suppkey = _supplier_of(partkey, rng.integers(0, 4, total), rows("supplier", scale))
    quantity = rng.integers(1, 51, total)
    price = quantity * _retail_cents(partkey)
    discount, tax = rng.integers(0, 11, total), rng.integers(0, 9, total)
    ordered = np.repeat(orderdate, lines)
    shipdate = ordered + rng.integers(1, 122, total)
    commitdate = ordered + rng.integers(30, 91, total)
    receiptdate = shipdate + rng.integers(1, 31, total)
    is_open = shipdate > TODAY
    returned = np.where(receiptdate <= TODAY, np.where(rng.integers(0, 2, total) == 0, "R", "A"), "N")

    open_lines = np.add.reduceat(is_open.astype(np.int64), first)
    status = np.where(open_lines == 0, "F", np.where(open_lines == lines, "O", "P"))
    totalprice = np.add.reduceat(price * (100 - discount) * (100 + tax) // 10_000, first)

    yield (
        "orders",
        pa.table(
            {
                "o_orderkey": orderkey,
                "o_custkey": custkey,
                "o_orderstatus": status,
                "o_totalprice": _money(totalprice),
                "o_orderdate": _dates(orderdate),
                "o_orderpriority": words.pick(rng, words.PRIORITIES, count),
                "o_clerk": _numbered("Clerk#", rng.integers(1, max(int(1000 * scale), 1) + 1, count)),
                "o_shippriority": np.zeros(count, dtype=np.int32),
                "o_comment": words.pick(rng, words.phrases(7, 79), count),
            }
        ),
    )
    yield (
        "lineitem",
        pa.table(
            {
                "l_orderkey": np.repeat(orderkey, lines),
                "l_partkey": partkey,
                "l_suppkey": suppkey,
                "l_linenumber": np.arange(total) - np.repeat(first, lines) + 1,
                "l_quantity": quantity,
                "l_extendedprice": _money(price),
                "l_discount": _money(discount),
                "l_tax": _money(tax),
                "l_returnflag": returned,
                "l_linestatus": np.where(is_open, "O", "F"),
                "l_shipdate": _dates(shipdate),
                "l_commitdate": _dates(commitdate),
                "l_receiptdate": _dates(receiptdate),
                "l_shipinstruct": words.pick(rng, words.INSTRUCTIONS, total),
                "l_shipmode": words.pick(rng, words.MODES, total),
                "l_comment": words.pick(rng, words.phrases(4, 44), total),
            }
        ),
    )


def _suppliers(rng: np.random.Generator, start: int, stop: int) -> pa.Table:
    key, count = np.arange(start, stop) + 1, stop - start
    nation = rng.integers(0, 25, count)
    comment = np.array(words.pick(rng, words.phrases(9, 80), count).to_pylist(), dtype=object)
    complained = rng.random(count) < 0.005
    complained[rng.integers(0, count)] = True
    comment[complained] = [f"{text[:60]} Customer slyly Complaints" for text in comment[complained]]
    return pa.table(
        {
            "s_suppkey": key,
            "s_name": _numbered("Supplier#", key),
            "s_address": words.pick(rng, words.phrases(4, 40), count),
            "s_nationkey": nation,
            "s_phone": _phones(rng, nation),
            "s_acctbal": _money(rng.integers(-99_999, 1_000_000, count)),
            "s_comment": pa.array(comment, pa.string()),
        }
    )


def _parts(rng: np.random.Generator, start: int, stop: int) -> pa.Table:
    key, count = np.arange(start, stop) + 1, stop - start
    maker = rng.integers(1, 6, count)
    return pa.table(
        {
            "p_partkey": key,
            "p_name": words.pick(rng, words.part_names(), count),
            "p_mfgr": _joined("Manufacturer#", maker),
            "p_brand": _joined("Brand#", maker * 10 + rng.integers(1, 6, count)),
            "p_type": words.pick(rng, words.TYPES, count),
            "p_size": rng.integers(1, 51, count),
            "p_container": words.pick(rng, words.CONTAINERS, count),
            "p_retailprice": _money(_retail_cents(key)),
            "p_comment": words.pick(rng, words.phrases(3, 23), count),
        }
    )


def _partsupps(rng: np.random.Generator, start: int, stop: int, suppliers: int) -> pa.Table:
    part, nth = np.repeat(np.arange(start, stop) + 1, 4), np.tile(np.arange(4), stop - start)
    count = len(part)
    return pa.table(
        {
            "ps_partkey": part,
            "ps_suppkey": _supplier_of(part, nth, suppliers),
            "ps_availqty": rng.integers(1, 10_000, count),
            "ps_supplycost": _money(rng.integers(100, 100_001, count)),
            "ps_comment": words.pick(rng, words.phrases(15, 199), count),
        }
    )


def _customers(rng: np.random.Generator, start: int, stop: int) -> pa.Table:
    key, count = np.arange(start, stop) + 1, stop - start
    nation = rng.integers(0, 25, count)
    return pa.table(
        {
            "c_custkey": key,
            "c_name": _numbered("Customer#", key),
            "c_address": words.pick(rng, words.phrases(4, 40), count),
            "c_nationkey": nation,
            "c_phone": _phones(rng, nation),
            "c_acctbal": _money(rng.integers(-99_999, 1_000_000, count)),
            "c_mktsegment": words.pick(rng, words.SEGMENTS, count),
            "c_comment": words.pick(rng, words.phrases(11, 117), count),
        }
    )


def _chunks(count: int) -> Iterator[tuple[int, int]]:
    for start in range(0, count, CHUNK):
        yield start, min(start + CHUNK, count)


def _rng(seed: int, table: int, start: int) -> np.random.Generator:
    return np.random.default_rng((seed, table, start))


def _retail_cents(partkey: np.ndarray) -> np.ndarray:
    return 90_000 + partkey // 10 % 20_001 + 100 * (partkey % 1_000)


def _supplier_of(partkey: np.ndarray, nth: np.ndarray, suppliers: int) -> np.ndarray:
    """The specification's spread of a part's four suppliers."""
    return (partkey + nth * (suppliers // 4 + (partkey - 1) // suppliers)) % suppliers + 1


def _money(cents: np.ndarray) -> pa.Array:
    """Cents as decimals, without a Python object each: a decimal128 is its integer's two's complement."""
    wide = np.empty((len(cents), 2), dtype=np.int64)
    wide[:, 0] = cents
    wide[:, 1] = wide[:, 0] >> 63
    return pa.Array.from_buffers(pa.decimal128(15, 2), len(cents), [None, pa.py_buffer(wide)])


def _dates(days: np.ndarray) -> pa.Array:
    return pa.array(days.astype(np.int32)).cast(pa.date32())


def _joined(prefix: str, numbers: np.ndarray) -> pa.Array:
    return pc.binary_join_element_wise(pa.scalar(prefix), pa.array(numbers).cast(pa.string()), "")


def _numbered(prefix: str, numbers: np.ndarray) -> pa.Array:
    digits = pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width=9, padding="0")
    return pc.binary_join_element_wise(pa.scalar(prefix), digits, "")


def _phones(rng: np.random.Generator, nation: np.ndarray) -> pa.Array:
    parts = [
        nation + 10,
        *(rng.integers(low, high, len(nation)) for low, high in ((100, 1000), (100, 1000), (1000, 10000))),
    ]
    return pc.binary_join_element_wise(*(pa.array(part).cast(pa.string()) for part in parts), "-")
