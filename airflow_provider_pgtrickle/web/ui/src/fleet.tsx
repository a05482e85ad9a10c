import { useEffect, useRef } from "react";
import type { ReactNode } from "react";

import { type Cost, type Graph, type Growth, type Pending, ofConnection, usePolled } from "./api";
import { Badge, Empty, List, Loading, Trouble, Words } from "./parts";
import { TableLink } from "./places";
import { ago, bytes, condition, freshness, isHalted, lag, milliseconds, number, orphan, seconds, short, shorten } from "./words";

interface Props {
  connId: string;
  graph: Graph;
  pending: Pending[] | null;
}

/** The whole fleet: what needs somebody, and what costs. */
export function FleetView({ connId, graph, pending }: Props): ReactNode {
  const costs = usePolled<Cost[]>(ofConnection(connId, "costs"), 60);
  const growth = usePolled<Growth[]>(ofConnection(connId, "growth"), 60);
  const growing = (growth.data ?? []).filter((buffer) => buffer.grows);
  const grown = useGrowth(pending);
  const quoted = new Map(graph.tables.map((table) => [table.name, table.quoted]));
  const named = (name: string) => <TableLink quoted={quoted.get(name) ?? name}>{shorten(name)}</TableLink>;

  // Who gates a table wants it to be old.
  const late = graph.tables
    .filter((table) => ["warn", "bad"].includes(lag(table).tone) && !table.is_gated)
    .sort((a, b) => over(b) - over(a));
  const stopped = graph.tables.filter((t) => isHalted(t) || t.is_gated || t.needs_reinit || t.consecutive_errors > 0);
  const orphans = graph.tables.filter((table) => orphan(graph, table.name) !== null);
  const failed = (costs.data ?? []).filter((cost) => cost.failures > 0);
  const avoidable = (costs.data ?? []).filter((cost) => cost.avoidable > 0).sort((a, b) => b.avoidable_ms - a.avoidable_ms);
  const dearest = (costs.data ?? []).filter((cost) => cost.total_ms > 0).slice(0, 15);
  const most = dearest[0]?.total_ms ?? 1;
  const usual = new Map((costs.data ?? []).map((cost) => [cost.name, cost.usual_changes]));
  const buffers = (pending ?? [])
    .filter((row) => (row.pending_rows ?? 0) > 0)
    .sort((a, b) => (b.pending_rows ?? 0) - (a.pending_rows ?? 0))
    .slice(0, 15);

  /** Who has most of a source still to take: a buffer keeps what any reader needs. */
  const slowest = (source: string) =>
    (pending ?? [])
      .filter((row) => row.source_table === source && (row.pending_rows ?? 0) > 0)
      .sort((a, b) => (b.pending_rows ?? 0) - (a.pending_rows ?? 0))[0]?.stream_table;

  return (
    <div className="pgt-fleet">
      <dl className="pgt-figures">
        <Figure label="stream tables" value={number(graph.tables.length)} />
        <Figure label="fresh or live" value={number(graph.tables.filter((t) => ["good", "live"].includes(lag(t).tone)).length)} />
        <Figure label="late" value={number(late.length)} tone={late.length > 0 ? "warn" : undefined} />
        <Figure label="stopped or failing" value={number(stopped.length)} tone={stopped.length > 0 ? "bad" : undefined} />
        <Figure label="refreshing now" value={number(graph.tables.filter((t) => t.is_running).length)} />
        <Figure
          label="pending changes"
          value={pending ? short(pending.reduce((sum, row) => sum + (row.pending_rows ?? 0), 0)) : "…"}
        />
      </dl>

      <Section title="Late" none="Every table is within its target." count={late.length}>
        <List head={["Table", "Lag", "Target", "Last refresh"]}>
          {late.slice(0, 15).map((table) => (
            <tr key={table.name}>
              <th scope="row">{named(table.name)}</th>
              <td>
                <Badge tone={lag(table).tone}>{lag(table).word}</Badge> {freshness(table)}
              </td>
              <td>{seconds(table.target_seconds)}</td>
              <td>{ago(table.last_refresh_at)}</td>
            </tr>
          ))}
        </List>
      </Section>

      <Section title="Stopped or failing" none="No table is halted, gated or failing." count={stopped.length}>
        <List head={["Table", "State", "Why"]}>
          {stopped.map((table) => (
            <tr key={table.name}>
              <th scope="row">{named(table.name)}</th>
              <td>
                <Badge tone={condition(table).tone}>{condition(table).word}</Badge>
              </td>
              <td className="pgt-why">
                {table.last_error ? (
                  <Words text={table.last_error} />
                ) : table.is_gated ? (
                  (table.gated_reason ?? "gated")
                ) : table.needs_reinit ? (
                  `computed anew by its next refresh (${table.reinit_reason ?? "schema_changed"})`
                ) : (
                  "Nothing was told: its history may say more. Resume it, or refresh it in full."
                )}
              </td>
            </tr>
          ))}
        </List>
      </Section>

      {orphans.length > 0 && (
        <Section title="Declared by nobody any more" none="" count={orphans.length}>
          <List head={["Table", "Why, and what helps"]}>
            {orphans.map((table) => (
              <tr key={table.name}>
                <th scope="row">{named(table.name)}</th>
                <td className="pgt-why">
                  {orphan(graph, table.name)} <Words text={PRUNE} />
                </td>
              </tr>
            ))}
          </List>
        </Section>
      )}

      {costs.error && <Trouble text={costs.error} again={costs.again} />}
      {!costs.data && !costs.error && <Loading what="the last 24 hours" />}
      {costs.data && (
        <>
          <Section title="Failed in the last 24 hours" none="No refresh failed." count={failed.length}>
            <List head={["Table", "#Failures", "Last", "Why"]}>
              {failed.map((cost) => (
                <tr key={cost.name}>
                  <th scope="row">{named(cost.name)}</th>
                  <td>{number(cost.failures)}</td>
                  <td>{ago(cost.failed_at)}</td>
                  <td className="pgt-why">
                    <Words text={cost.failure ?? ""} />
                  </td>
                </tr>
              ))}
            </List>
          </Section>

          <Section title="FULL that could have been avoided" none="No refresh fell back to FULL." count={avoidable.length}>
            <List head={["Table", "#Times", "#Took", "#By differences", "Why, and what helps"]}>
              {avoidable.map((cost) => (
                <tr key={cost.name}>
                  <th scope="row">{named(cost.name)}</th>
                  <td>{number(cost.avoidable)}</td>
                  <td>{milliseconds(cost.avoidable_ms)}</td>
                  <td>{cost.differential_ms === null ? "never" : `${milliseconds(cost.differential_ms)} each`}</td>
                  <td className="pgt-why">
                    {cost.avoidable_reason}. <Words text={remedy(cost.avoidable_reason)} />
                  </td>
                </tr>
              ))}
            </List>
          </Section>

          <Section title="What costs most, last 24 hours" none="Nothing was refreshed." count={dearest.length}>
            <List head={["Table", "Total", "#Refreshes", "#Longest", "#Rows read"]}>
              {dearest.map((cost) => (
                <tr key={cost.name}>
                  <th scope="row">{named(cost.name)}</th>
                  <td>
                    <span className="pgt-meter">
                      <i style={{ width: `${Math.max(1, (cost.total_ms / most) * 100)}%` }} aria-hidden="true" />
                    </span>
                    {milliseconds(cost.total_ms)}
                  </td>
                  <td>{number(cost.refreshes)}</td>
                  <td>{milliseconds(cost.longest_ms)}</td>
                  <td>{short(cost.rows_read)}</td>
                </tr>
              ))}
            </List>
          </Section>
        </>
      )}

      {growth.error && <Trouble text={growth.error} again={growth.again} />}
      {growth.data && (
        <Section
          title="Buffers that grow"
          none={
            growth.data.length > 0 ? (
              "Every buffer was emptied as far as half a day before."
            ) : (
              <Words text="No sample yet: `plan` and `pgtrickle cleanup` take one every ten minutes." />
            )
          }
          count={growing.length}
        >
          <List head={["Source", "Over the last day", "#Least before", "#Least since", "#Buffer", "What helps"]}>
            {growing.slice(0, 15).map((buffer) => (
              <tr key={buffer.source}>
                <th scope="row">{shorten(buffer.source)}</th>
                <td>
                  <Spark rows={buffer.rows} since={buffer.since} />
                </td>
                <td>{number(buffer.low_before)}</td>
                <td>{number(buffer.low_since)}</td>
                <td>{bytes(buffer.bytes)}</td>
                <td className="pgt-why">
                  <Kept by={slowest(buffer.source)} known={pending !== null} named={named} />
                </td>
              </tr>
            ))}
          </List>
        </Section>
      )}

      <Section title="Buffers that wait" none={pending ? "No change is pending." : "Counting pending changes …"} count={buffers.length}>
        <List head={["Source", "For", "#Pending", "Against a usual refresh", "#Buffer", "While you look"]}>
          {buffers.map((row) => {
            const rows = row.pending_rows ?? 0;
            const typical = usual.get(row.stream_table);
            const times = typical ? rows / typical : null;
            const more = grown.get(`${row.stream_table} ${row.source_table}`) ?? 0;
            return (
              <tr key={`${row.stream_table} ${row.source_table}`}>
                <th scope="row">{shorten(row.source_table)}</th>
                <td>{named(row.stream_table)}</td>
                <td>{number(rows)}</td>
                <td>
                  {times === null ? "–" : <Badge tone={times > 10 ? "bad" : times > 3 ? "warn" : "good"}>{times <= 1.5 ? "as usual" : `${times < 10 ? times.toFixed(1) : short(times)} times`}</Badge>}
                </td>
                <td>{bytes(row.buffer_bytes)}</td>
                <td>{more > 0 ? `grows, +${number(more)}` : more < 0 ? `shrinks, ${number(more)}` : "steady"}</td>
              </tr>
            );
          })}
        </List>
      </Section>
    </div>
  );
}

function over(table: Graph["tables"][number]): number {
  return (table.staleness_seconds ?? Infinity) / (table.target_seconds ?? 1);
}

/** What helps against each reason that a content was computed in full; tests/unit/test_page_bundle.py has the list. */
const REMEDIES: Record<string, string> = {
  change_ratio_exceeded: "Refresh more often, or raise differential_max_change_ratio if the change would have been cheaper.",
  truncate_detected: "A source was truncated: DELETE, or load by MERGE, keeps the difference.",
  not_differentiable: "Its Explain says which part of the query stands in the way.",
  schema_changed: "A source, or something else behind the query, was altered: alter several at once, before one refresh.",
  buffer_lost: "Capture was touched or lost: `pgtrickle health` says by what.",
  data_error: "A row that came and went has no value: guard it in the query, with NULLIF for 7 / 0.",
  out_of_memory: "Refresh more often, or give PostgreSQL more work_mem and room for temporary files, Spark more memory.",
};

function remedy(reason: string | null): string {
  return REMEDIES[(reason ?? "").split(":")[0] ?? ""] ?? "";
}

const PRUNE = "Declare it again, or drop it: `pgtrickle prune`.";

/** How much each buffer has grown since the view was opened. */
function useGrowth(pending: Pending[] | null): Map<string, number> {
  const first = useRef<Map<string, number> | null>(null);
  useEffect(() => {
    if (pending && first.current === null) first.current = keyedRows(pending);
  }, [pending]);
  const now = keyedRows(pending ?? []);
  return new Map([...now].map(([key, rows]) => [key, rows - (first.current?.get(key) ?? rows)]));
}

function keyedRows(pending: Pending[]): Map<string, number> {
  return new Map(pending.map((row) => [`${row.stream_table} ${row.source_table}`, row.pending_rows ?? 0]));
}

function Figure({ label, value, tone }: { label: string; value: string; tone?: string | undefined }): ReactNode {
  return (
    <div className={tone ? `pgt-${tone}` : undefined}>
      <dt>{label}</dt>
      <dd>{value}</dd>
    </div>
  );
}

/** Why a buffer isn't emptied. */
function Kept({ by, known, named }: { by: string | undefined; known: boolean; named: (name: string) => ReactNode }): ReactNode {
  if (by !== undefined) return <>It is kept for {named(by)}, which has most of it still to take: refresh that.</>;
  return known ? <Words text="No reader waits for it: `pgtrickle cleanup` empties it." /> : "";
}

/** The rows of a buffer over time, as a line. */
function Spark({ rows, since }: { rows: number[]; since: string }): ReactNode {
  const most = Math.max(1, ...rows);
  const points = rows.map((row, at) => `${((at / Math.max(1, rows.length - 1)) * 118 + 1).toFixed(1)},${(23 - (row / most) * 22).toFixed(1)}`);
  return (
    <svg className="pgt-spark" viewBox="0 0 120 24" width={120} height={24} role="img" aria-label={`${number(rows[0])} rows ${ago(since)}, ${number(rows.at(-1))} at the last sample, ${number(most)} at most`}>
      <polyline points={points.join(" ")} />
    </svg>
  );
}

function Section({ title, none, count, children }: { title: string; none: ReactNode; count: number; children: ReactNode }): ReactNode {
  return (
    <section className="pgt-card" aria-label={title}>
      <h2>
        {title} {count > 0 && <span className="pgt-quiet">{number(count)}</span>}
      </h2>
      {count === 0 ? <Empty>{none}</Empty> : children}
    </section>
  );
}
