{{ config(materialized='stream_table', meta={'schedule': '5m', 'tier': 'warm'}, tags=['money'],
          indexes=[{'columns': ['total']}]) }}

select o.customer_id, sum(o.amount) as total, count(*) as orders
from {{ source('shop', 'orders') }} o
group by o.customer_id
