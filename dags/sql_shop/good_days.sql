-- schedule: calculated
-- refresh_mode: AUTO
SELECT day, revenue
FROM daily_sales
WHERE revenue > 1000
