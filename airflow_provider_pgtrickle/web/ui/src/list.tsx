import { useState } from "react";
import type { ReactNode } from "react";

import type { Graph, Pending } from "./api";
import { Badge, List, Words } from "./parts";
import { TableLink } from "./places";
import { condition, freshness, lag, lastEnding, milliseconds, number, orphan, shorten } from "./words";

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
      <List head={["Name", "Status", "Freshness", "Mode", "Schedule", "Last action", "#Took", "#Pending"]}>
        {shown.map((table) => {
          const status = condition(table);
          const age = lag(table);
          const last = lastEnding(table);
          const orphaned = orphan(graph, table.name);
          return (
            <tr key={table.name}>
              <th scope="row">
                <TableLink quoted={table.quoted}>{shorten(table.name)}</TableLink>
                {table.last_error && (
                  <p className="pgt-why">
                    <Words text={table.last_error} />
                  </p>
                )}
                {orphaned && <p className="pgt-why">{orphaned}</p>}
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
              <td>{milliseconds(table.last_duration_ms)}</td>
              <td>{pending ? number(waiting.get(table.name) ?? 0) : "…"}</td>
            </tr>
          );
        })}
      </List>
    </section>
  );
}
