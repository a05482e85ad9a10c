import { useState } from "react";
import type { ReactNode } from "react";

import type { Graph, Pending } from "./api";
import { Badge } from "./parts";
import { TableLink } from "./places";
import { condition, freshness, lag, lastEnding, milliseconds, number, shorten } from "./words";

/** All stream tables as a list: what the graph says, for the eye that reads, the phone and the screen reader. */
export function ListView({ graph, pending }: { graph: Graph; pending: Pending[] | null }): ReactNode {
  const [sought, setSought] = useState("");
  const waiting = new Map<string, number>();
  for (const row of pending ?? []) waiting.set(row.stream_table, (waiting.get(row.stream_table) ?? 0) + (row.pending_rows ?? 0));
  const wanted = sought.trim().toLowerCase();
  const shown = graph.tables.filter((table) => table.name.toLowerCase().includes(wanted));
  return (
    <section aria-label="Stream tables">
      <div className="pgt-bar">
        <label>
          <span>Search</span>
          <input type="search" value={sought} placeholder="part of a name" onChange={(event) => setSought(event.target.value)} />
        </label>
        <span className="pgt-quiet" role="status">
          {wanted && `${shown.length} of ${graph.tables.length}`}
        </span>
      </div>
      <div className="pgt-scroll" tabIndex={0} role="region" aria-label="Table of stream tables">
        <table>
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Status</th>
              <th scope="col">Freshness</th>
              <th scope="col">Mode</th>
              <th scope="col">Schedule</th>
              <th scope="col">Last action</th>
              <th scope="col" className="pgt-number">
                Took
              </th>
              <th scope="col" className="pgt-number">
                Pending
              </th>
            </tr>
          </thead>
          <tbody>
            {shown.map((table) => {
              const status = condition(table);
              const age = lag(table);
              const last = lastEnding(table);
              return (
                <tr key={table.name}>
                  <th scope="row">
                    <TableLink quoted={table.quoted}>{shorten(table.name)}</TableLink>
                    {table.last_error && <p className="pgt-why">{table.last_error}</p>}
                    {graph.owners[table.name]?.removed_at && (
                      <p className="pgt-why">No file declares it any more (it was {graph.owners[table.name]?.graph}).</p>
                    )}
                  </th>
                  <td>
                    <Badge tone={status.tone}>{status.word}</Badge>
                  </td>
                  <td>
                    <Badge tone={age.tone}>{age.word}</Badge> {!table.is_live && freshness(table)}
                  </td>
                  <td>{table.refresh_mode}</td>
                  <td>{table.is_live ? "by writers" : (table.schedule ?? "calculated")}</td>
                  <td>
                    <Badge tone={last.tone}>{last.word}</Badge>
                  </td>
                  <td className="pgt-number">{milliseconds(table.last_duration_ms)}</td>
                  <td className="pgt-number">{pending ? number(waiting.get(table.name) ?? 0) : "…"}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}
