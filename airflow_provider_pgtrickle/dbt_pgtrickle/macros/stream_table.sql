{#
  materialized='stream_table': dbt can only send SQL, so it asks for the table and waits for the answer. Who serves
  requests (`pgtrickle serve-requests`, or a DAG) declares it, fills it and keeps it up to date.
#}
{% materialization stream_table, adapter='postgres' %}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target = this.incorporate(type='table') -%}
  {%- set grants = config.get('grants') -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}

  {% if existing is not none and not dbt_pgtrickle.is_stream_table(existing) %}
    {% if should_full_refresh() %}
      {{ drop_relation_if_exists(existing) }}
    {% else %}
      {% do exceptions.raise_compiler_error(
        existing ~ " is there, and no stream table. Run it once with --full-refresh, which drops it."
      ) %}
    {% endif %}
    {% set existing = none %}
  {% endif %}

  {% call statement('main', fetch_result=True) %}
    {{ dbt_pgtrickle.ask(target, sql, is_new=existing is none) }}
  {% endcall %}
  {% set requests = load_result('main')['data'] %}
  {# Nobody sees a request before its commit. #}
  {% do adapter.commit() %}

  {% set waited = dbt_pgtrickle.wait(target, requests) %}

  {% if waited %}
    {% call statement('settle') %}
      select 1
    {% endcall %}
    {% do create_indexes(target) %}
    {% do apply_grants(target, grants, should_revoke=False) %}
    {% do persist_docs(target, model) %}
    {% do adapter.commit() %}
  {% endif %}

  {{ run_hooks(post_hooks, inside_transaction=False) }}

  {{ return({'relations': [target]}) }}
{% endmaterialization %}


{# The statement that asks for the table, and for a refresh of one that is there: two requests, in order. #}
{% macro ask(target, query, is_new) %}
  {%- set name = '"' ~ target.schema ~ '"."' ~ target.identifier ~ '"' -%}
  {%- set full = should_full_refresh() -%}
  select pgtrickle.request_declare(
    {{ dbt_pgtrickle.literal(name) }}, {{ dbt_pgtrickle.literal(query) }},
    {{ dbt_pgtrickle.literal(tojson(dbt_pgtrickle.options())) }}, {{ dbt_pgtrickle.literal(true) }}
  ) as request_id
  {%- if not is_new %}
  union all
  select pgtrickle.request_refresh({{ dbt_pgtrickle.literal(name) }}, {{ dbt_pgtrickle.literal(full) }})
  {%- endif %}
{% endmacro %}


{# The options of the stream table: of the config itself, or of its `meta`, where dbt wants keys that it doesn't know. #}
{% macro options() %}
  {%- set given = {} -%}
  {%- set meta = config.get('meta') or {} -%}
  {%- for name in [
    'schedule', 'refresh_mode', 'append_only', 'diamond_consistency', 'diamond_schedule_policy', 'cdc_mode',
    'partition_by', 'partition_every', 'keep', 'tier', 'placement', 'unlogged_buffers', 'differential_max_change_ratio', 'verify_every',
    'unit', 'append_only_breach', 'timezone', 'frozen_before', 'frozen_breach', 'float_sums'
  ] -%}
    {%- set value = config.get(name, meta.get(name)) -%}
    {%- if value is not none -%}{%- do given.update({name: value}) -%}{%- endif -%}
  {%- endfor -%}
  {{ return(given) }}
{% endmacro %}


{# Wait until each request has its answer; an error is dbt's error. False: nobody waits. #}
{% macro wait(target, requests) %}
  {%- set seconds = var('pgtrickle_wait_seconds', 600) | int -%}
  {%- if seconds <= 0 -%}
    {{ log("Asked for " ~ target ~ ": request " ~ (requests | map(attribute=0) | join(', ')), info=True) }}
    {{ return(false) }}
  {%- endif -%}
  {%- set state = namespace(left=seconds, status='PENDING', answer='', error='') -%}
  {%- for (number,) in requests -%}
    {%- set state.status = 'PENDING' -%}
    {# Short calls, each with a transaction of its own: a long one would hold back whatever waits for old ones. #}
    {%- for _ in range(seconds) -%}
      {%- if state.left > 0 and state.status not in ('DONE', 'FAILED') -%}
        {%- call statement('wait', fetch_result=True) -%}
          select status, answer::text, error from pgtrickle.wait_for_request({{ number }}, 1)
        {%- endcall -%}
        {%- do adapter.commit() -%}
        {%- set found = load_result('wait')['data'][0] -%}
        {%- set state.status, state.answer, state.error = found[0], found[1], found[2] -%}
        {%- set state.left = state.left - 1 -%}
      {%- endif -%}
    {%- endfor -%}
    {%- if state.status == 'FAILED' -%}
      {%- do exceptions.raise_compiler_error(state.error) -%}
    {%- elif state.status != 'DONE' -%}
      {%- do exceptions.raise_compiler_error(
        "Request " ~ number ~ " for " ~ target ~ " has no answer after " ~ seconds ~ " s (" ~ state.status
        ~ "). Run `pgtrickle serve-requests`, or set the variable pgtrickle_wait_seconds: 0 to wait for none."
      ) -%}
    {%- else -%}
      {{ log(target ~ ": " ~ state.answer, info=False) }}
    {%- endif -%}
  {%- endfor -%}
  {{ return(true) }}
{% endmacro %}


{% macro is_stream_table(relation) %}
  {%- call statement('is_stream_table', fetch_result=True) -%}
    select count(*) from pgtrickle.pgt_stream_tables
    where pgt_schema = {{ dbt_pgtrickle.literal(relation.schema) }}
      and pgt_name = {{ dbt_pgtrickle.literal(relation.identifier) }}
  {%- endcall -%}
  {{ return(load_result('is_stream_table')['data'][0][0] > 0) }}
{% endmacro %}


{# A value as SQL. The quoting dollars carry the text's digest, which the text can't hold. #}
{% macro literal(value) %}
  {%- if value is sameas true or value is sameas false -%}
    {{ return('true' if value else 'false') }}
  {%- endif -%}
  {%- set tag = '$q' ~ local_md5(value) ~ '$' -%}
  {{ return(tag ~ value ~ tag) }}
{% endmacro %}
