/*
schedule: 10m
description: What was sold on each day, in UTC.
*/
SELECT (o.ordered_at AT TIME ZONE 'UTC')::date AS day, count(DISTINCT o.id) AS orders, sum(i.quantity * i.price) AS revenue
FROM orders o
JOIN items i ON i.order_id = o.id
WHERE o.status <> 'cancelled'
GROUP BY 1
