"""The words of TPC-H's texts, and text columns made of them: each a pool of phrases and an index into it."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa

REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
NATIONS = (
    ("ALGERIA", 0), ("ARGENTINA", 1), ("BRAZIL", 1), ("CANADA", 1), ("EGYPT", 4), ("ETHIOPIA", 0), ("FRANCE", 3),
    ("GERMANY", 3), ("INDIA", 2), ("INDONESIA", 2), ("IRAN", 4), ("IRAQ", 4), ("JAPAN", 2), ("JORDAN", 4),
    ("KENYA", 0), ("MOROCCO", 0), ("MOZAMBIQUE", 0), ("PERU", 1), ("CHINA", 2), ("ROMANIA", 3),
    ("SAUDI ARABIA", 4), ("VIETNAM", 2), ("RUSSIA", 3), ("UNITED KINGDOM", 3), ("UNITED STATES", 1),
)  # fmt: skip
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "MACHINERY", "HOUSEHOLD")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
INSTRUCTIONS = ("DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN")
MODES = ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB")
TYPES = tuple(
    f"{a} {b} {c}"
    for a in ("STANDARD", "SMALL", "MEDIUM", "LARGE", "ECONOMY", "PROMO")
    for b in ("ANODIZED", "BURNISHED", "PLATED", "POLISHED", "BRUSHED")
    for c in ("TIN", "NICKEL", "BRASS", "STEEL", "COPPER")
)
CONTAINERS = tuple(
    f"{a} {b}"
    for a in ("SM", "LG", "MED", "JUMBO", "WRAP")
    for b in ("CASE", "BOX", "BAG", "JAR", "PKG", "PACK", "CAN", "DRUM")
)
_COLORS_TEXT = """
almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood burnished chartreuse chiffon
chocolate coral cornflower cornsilk cream cyan dark deep dim dodger drab firebrick floral forest frosted gainsboro
ghost goldenrod green grey honeydew hot indian ivory khaki lace lavender lawn lemon light lime linen magenta maroon
medium metallic midnight mint misty moccasin navajo navy olive orange orchid pale papaya peach peru pink plum powder
puff purple red rose rosy royal saddle salmon sandy seashell sienna sky slate smoke snow spring steel tan thistle
tomato turquoise violet wheat white yellow
"""
COLORS = tuple(_COLORS_TEXT.split())
_PROSE_TEXT = """
the foxes ideas theodolites pinto beans instructions dependencies excuses platelets asymptotes courts dolphins
multipliers sauternes warthogs frets dinos attainments somas furiously sly careful blithe quick fluffy slow quiet
ruthless thin close dogged daring bold ironic final even silent express regular special pending unusual requests
packages deposits accounts sleep wake are cajole haggle nag use boost affix detect integrate among about above across
after against along
"""
_PROSE = tuple(_PROSE_TEXT.split())


@cache
def phrases(words: int, most: int, *, seed: int = 7) -> pa.Array:
    """A few thousand phrases of so many words, cut to `most` characters."""
    picks = np.random.default_rng(seed + words).integers(0, len(_PROSE), (4096, words))
    return pa.array([" ".join(_PROSE[i] for i in row)[:most] for row in picks])


@cache
def part_names() -> pa.Array:
    picks = np.random.default_rng(11).integers(0, len(COLORS), (20000, 5))
    return pa.array([" ".join(COLORS[i] for i in row)[:55] for row in picks])


def pick(rng: np.random.Generator, pool: pa.Array | tuple[str, ...], size: int) -> pa.Array:
    """`size` random members of the pool."""
    values = pool if isinstance(pool, pa.Array) else pa.array(pool)
    return values.take(pa.array(rng.integers(0, len(values), size)))
