{{ config(materialized='stream_table') }}

-- One stream table over another, and over a model that dbt itself builds.
select c.country, sum(t.total) as total
from {{ ref('customer_totals') }} t
join {{ ref('known_customers') }} c on c.id = t.customer_id
group by c.country
