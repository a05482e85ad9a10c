-- Half an hour in the shop: orders come, prices and places change, one order is taken back, visitors pass.
WITH placed AS (
    INSERT INTO orders (customer_id)
    SELECT 1 + (n * 37) % 2000 FROM generate_series(1, 20) AS n
    RETURNING id
)
INSERT INTO items (order_id, product, quantity, price)
SELECT id, 'Cup', 1 + id % 3, 12.50 FROM placed
UNION ALL
SELECT id, 'Lamp', 1, 89.90 FROM placed;

UPDATE items SET price = price + 1 WHERE id IN (SELECT id FROM items ORDER BY id LIMIT 10);

UPDATE customers SET country = 'PT' WHERE id IN (SELECT id FROM customers ORDER BY id LIMIT 3);

UPDATE orders SET status = 'shipped' WHERE id IN (SELECT id FROM orders WHERE status = 'open' ORDER BY id LIMIT 15);

DELETE FROM orders WHERE id IN (SELECT id FROM orders WHERE status = 'paid' ORDER BY id LIMIT 5);

INSERT INTO visits (visited_at, customer_id, page)
SELECT now(), NULL, '/cups' FROM generate_series(1, 2);
