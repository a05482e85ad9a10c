-- The demo's shop. Small, and with enough rows that reading all of them again would show.
CREATE TABLE customers (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL,
    country text NOT NULL
);

CREATE TABLE orders (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    customer_id bigint NOT NULL REFERENCES customers,
    status text NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'paid', 'shipped', 'cancelled')),
    ordered_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE items (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    order_id bigint NOT NULL REFERENCES orders ON DELETE CASCADE,
    product text NOT NULL,
    quantity integer NOT NULL CHECK (quantity > 0),
    price numeric(10, 2) NOT NULL
);

-- Refreshes look rows up by the keys they join on.
CREATE INDEX ON orders (customer_id);
CREATE INDEX ON items (order_id);

-- What visitors did: a log without a key, where two rows may be the same.
CREATE TABLE visits (
    visited_at timestamptz NOT NULL,
    customer_id bigint,
    page text NOT NULL
);

INSERT INTO customers (name, country)
SELECT 'Customer ' || n, (ARRAY['AT', 'CH', 'DE', 'FR', 'IT'])[1 + n % 5]
FROM generate_series(1, 2000) AS n;

INSERT INTO orders (customer_id, status, ordered_at)
SELECT 1 + (n * 7919) % 2000,
       (ARRAY['open', 'paid', 'shipped', 'shipped'])[1 + n % 4],
       timestamptz '2026-01-01 00:00+00' + n * interval '7 minutes'
FROM generate_series(1, 20000) AS n;

INSERT INTO items (order_id, product, quantity, price)
SELECT 1 + (n::bigint * 104729) % 20000,
       (ARRAY['Cup', 'Bowl', 'Plate', 'Vase', 'Jug', 'Tile', 'Lamp'])[1 + n % 7],
       1 + n % 4,
       round((5 + (n * 31) % 4000 / 100.0)::numeric, 2)
FROM generate_series(1, 50000) AS n;

INSERT INTO visits (visited_at, customer_id, page)
SELECT timestamptz '2026-01-01 00:00+00' + n % 5000 * interval '1 minute',
       NULLIF(n % 2001, 0),
       (ARRAY['/', '/cups', '/bowls', '/cart'])[1 + n % 4]
FROM generate_series(1, 10000) AS n;

ANALYZE customers, orders, items, visits;
