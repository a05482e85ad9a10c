/*
schedule: "@hourly"
differential_max_change_ratio: 0.5
*/
SELECT product, sum(quantity) AS sold, avg(price) AS average_price
FROM items
GROUP BY product
