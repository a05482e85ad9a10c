{{ config(materialized='incremental', unique_key='id') }}

select id, country from {{ source('shop', 'customers') }}
