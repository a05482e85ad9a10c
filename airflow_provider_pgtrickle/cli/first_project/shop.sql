-- Something to keep stream tables on.
CREATE TABLE customers (id bigint PRIMARY KEY, name text NOT NULL);
CREATE TABLE orders (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    customer_id bigint NOT NULL REFERENCES customers,
    amount numeric(10, 2) NOT NULL
);
CREATE INDEX ON orders (customer_id);

INSERT INTO customers SELECT n, 'Customer ' || n FROM generate_series(1, 100) n;
INSERT INTO orders (customer_id, amount) SELECT 1 + n * 7919 % 100, n % 200 FROM generate_series(1, 1000) n;
