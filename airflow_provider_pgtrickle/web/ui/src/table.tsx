import { useContext, useEffect, useRef } from "react";
import type { ReactNode } from "react";
import { Link } from "react-router-dom";

import { Actions } from "./actions";
import { type Detail, type Pending, ofConnection, usePolled } from "./api";
import { Explain } from "./explain";
import { Fact, History } from "./history";
import { Badge, Empty, List, Loading, Sql, Trouble, Words } from "./parts";
import { ConnectionContext, TableLink } from "./places";
import { Plots } from "./plots";
import { ago, bytes, condition, dedented, freshness, isHalted, lag, milliseconds, number, orphaned, pendingKey, pendingRows, plural, seconds, shorten, tier, time } from "./words";

interface Props {
  name: string;
  part: string | null;
  pending: Pending[] | null;
  units: string[][];
}

/** One stream table: what it is, how it fares, what was done, and why. */
export function TableView({ name, part, pending, units }: Props): ReactNode {
  const connId = useContext(ConnectionContext);
  const { data: table, error, again } = usePolled<Detail>(ofConnection(connId, "stream-table", { name, limit: "60" }), 5);
  const shown = useRef<HTMLDivElement>(null);
  const there = table !== null;
  useEffect(() => {
    if (there && part) shown.current?.querySelector(`#pgt-${CSS.escape(part)}`)?.scrollIntoView();
  }, [there, part]);
  if (!table) return error ? <Trouble text={error} again={again} /> : <Loading what={name} />;

  const rows = pendingRows(pending);
  const waiting = table.sources.map((source) => rows.get(pendingKey(table.name, source.name)));
  const all = waiting.reduce<number>((sum, one) => sum + (one ?? 0), 0);
  const status = condition(table);
  const age = lag(table);
  const together = (units.find((unit) => unit.includes(table.name)) ?? []).filter((other) => other !== table.name).map(shorten).sort();
  return (
    <div ref={shown} className="pgt-table">
      {error && <Trouble text={`${error} What follows is as it was.`} again={again} />}
      <div className="pgt-title">
        <h2>{table.name}</h2>
        <Badge tone={status.tone}>{status.word}</Badge>
        <Badge tone={age.tone}>{age.word}</Badge>
        {table.description && <p className="pgt-description">{table.description}</p>}
        <Actions connId={connId} table={table} together={together} again={again} />
      </div>
      {table.last_error && (
        <div className="pgt-trouble" role="alert">
          <p>
            <Words text={table.last_error} />
          </p>
          <p>
            {plural(table.consecutive_errors, "failure")} in a row.{" "}
            {isHalted(table) && "It is not refreshed until somebody resumes it or refreshes it in full, once the cause is mended."}
          </p>
        </div>
      )}
      {table.is_gated && <p className="pgt-gated">Gated: {table.gated_reason ?? "its refreshes are held back."}</p>}
      {orphaned(table.owner, table.gone) && (
        <p className="pgt-gated">
          {orphaned(table.owner, table.gone)} Declare it again, or drop it: <code>pgtrickle prune</code>.
        </p>
      )}

      <dl className="pgt-figures">
        <div className={`pgt-${age.tone}`}>
          <dt>{table.is_live ? "freshness" : "lag, and its target"}</dt>
          <dd>{freshness(table)}</dd>
        </div>
        <div>
          <dt>rows, estimated</dt>
          <dd>{number(table.estimated_rows)}</dd>
        </div>
        <div>
          <dt>size</dt>
          <dd>{bytes(table.bytes)}</dd>
        </div>
        <div>
          <dt>pending changes</dt>
          <dd>{pending ? number(all) : "…"}</dd>
        </div>
      </dl>

      <section className="pgt-card" aria-label="What it is">
        <h3>What it is</h3>
        <dl className="pgt-facts">
          <Fact label="Mode">
            {table.refresh_mode}
            {table.refusal && ` (${table.refusal})`}
          </Fact>
          <Fact label="Schedule">
            {table.refresh_mode === "IMMEDIATE" ? "by writers, in their transactions" : (table.schedule ?? "calculated, as its readers need it")}
          </Fact>
          <Fact label="Placement">{table.placement ?? "as the setting says"}</Fact>
          <Fact label="Tier">{tier(table)}</Fact>
          {table.unit && <Fact label="Unit">{table.unit}</Fact>}
          {together.length > 0 && <Fact label="Refreshed together with">{together.join(", ")}</Fact>}
          {table.append_only && (
            <Fact label="Sources">
              {table.append_only_ended ? `not append-only any more: ${table.append_only_ended}` : "append-only, which is checked"}
            </Fact>
          )}
          {table.float_sums === "approximate" && <Fact label="Sums of floats">approximate, off by rounding</Fact>}
          {table.timezone && <Fact label="Times">by {table.timezone}</Fact>}
          {table.frozen_before && (
            <Fact label="Frozen">
              rows before {table.frozen_before}, whose changes are {table.frozen_breach === "ignore" ? "ignored" : "refused"}
            </Fact>
          )}
          {table.partition_by && <Fact label="Partitioned">{table.partition_by}</Fact>}
          <Fact label="DAG">
            {table.dag ? (
              <>
                <Link to={`/dags/${encodeURIComponent(table.dag.dag_id)}`}>{table.dag.dag_id}</Link>
                {table.dag.is_paused && " (paused)"}
              </>
            ) : (
              dagless(table)
            )}
          </Fact>
          {table.owner && (
            <Fact label="Declared in">
              {table.owner.file}
              {table.owner.bundle && ` of ${table.owner.bundle}`}
            </Fact>
          )}
          {table.assets[table.name] && (
            <Fact label="Asset">
              <Link to={`/${table.assets[table.name]}`}>its events, and who follows it</Link>
            </Fact>
          )}
          <Fact label="Declared by">{table.declared_by ?? "–"}</Fact>
          <Fact label="Content as of">{table.is_live && (table.staleness_seconds ?? 0) < 1 ? "now" : time(table.data_timestamp)}</Fact>
          <Fact label="Last refresh">{ago(table.last_refresh_at)}</Fact>
          <Fact label="Verified">
            {table.verified ? `${table.verified}, ${ago(table.verified_at)}` : "never"}
            {table.verify_every && `, every ${table.verify_every}`}
          </Fact>
          {table.needs_reinit && <Fact label="Next refresh">computes it anew ({table.reinit_reason})</Fact>}
        </dl>
        <Sql title="Query" text={dedented(table.original_query)} open={table.original_query.length < 600} />
      </section>

      <section className="pgt-card" aria-label="Sources and readers">
        <h3>Sources and readers</h3>
        <List head={["It reads", "Kind", "Captured", "#Rows, estimated", "#Pending", "Columns"]}>
          {table.sources.map((source, at) => (
            <tr key={source.name}>
              <th scope="row">
                {source.is_stream_table && source.quoted ? (
                  <TableLink quoted={source.quoted}>{shorten(source.name)}</TableLink>
                ) : table.assets[source.name] ? (
                  <Link to={`/${table.assets[source.name]}`}>{shorten(source.name)}</Link>
                ) : (
                  shorten(source.name)
                )}
              </th>
              <td>{source.source_type.toLowerCase().replaceAll("_", " ")}</td>
              <td>{source.cdc_mode === "NONE" ? "not: each refresh reads it" : `by ${source.cdc_mode === "WAL" ? "WAL" : source.cdc_mode.toLowerCase()}`}</td>
              <td>{number(source.estimated_rows)}</td>
              <td>{pending ? number(waiting[at] ?? 0) : "…"}</td>
              <td className="pgt-columns">{source.columns_used?.join(", ")}</td>
            </tr>
          ))}
        </List>
        <p>
          Read by{" "}
          {table.readers.length === 0
            ? "no stream table."
            : table.readers.map((reader, at) => (
                <span key={reader.name}>
                  {at > 0 && ", "}
                  <TableLink quoted={reader.quoted}>{shorten(reader.name)}</TableLink>
                </span>
              ))}
        </p>
      </section>

      {table.refresh_mode === "IMMEDIATE" && (
        <section className="pgt-card" aria-label="What writers pay">
          <h3>What writers pay</h3>
          {table.is_live ? (
            <p>Its sources' writers maintain it in their own transactions, so it is never late.</p>
          ) : (
            <p>It is IMMEDIATE, and not maintained by writers yet: its next refresh begins that.</p>
          )}
          {table.writers.length === 0 ? (
            <Empty>No statement has been timed yet; one in fifty is.</Empty>
          ) : (
            <List head={["Source", "#Statements timed", "#Rows each", "#Mean", "#Longest", "Last"]}>
              {table.writers.map((writer) => (
                <tr key={writer.source}>
                  <th scope="row">{shorten(writer.source)}</th>
                  <td>{number(writer.statements)}</td>
                  <td>{writer.mean_rows.toFixed(1)}</td>
                  <td>{milliseconds(writer.mean_ms)}</td>
                  <td>{milliseconds(writer.longest_ms)}</td>
                  <td>{ago(writer.last_at)}</td>
                </tr>
              ))}
            </List>
          )}
        </section>
      )}

      <section className="pgt-card" aria-label="Plots">
        <h3>
          The last refreshes <span className="pgt-quiet">oldest on the left{table.target_seconds !== null && `, target ${seconds(table.target_seconds)}`}</span>
        </h3>
        <Plots table={table} />
        {table.history.length === 0 && <Empty>Nothing to plot: it has never been refreshed.</Empty>}
      </section>

      <section className="pgt-card" id="pgt-history" aria-label="History">
        <h3>History</h3>
        <History connId={connId} table={table} />
      </section>

      <section className="pgt-card" id="pgt-explain" aria-label="Explain">
        <h3>Explain</h3>
        <Explain connId={connId} name={table.quoted} />
      </section>
    </div>
  );
}

/** Why no DAG is named. */
function dagless(table: Detail): string {
  if (table.gone) return `${table.gone}, which this Airflow doesn't have`;
  const refreshed = table.history.some((refresh) => refresh.initiated_by?.startsWith("airflow "));
  return refreshed ? "one that you may not see" : "none has refreshed it";
}
