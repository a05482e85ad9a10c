import { useCallback, useEffect, useMemo, useState } from "react";
import type { ReactNode } from "react";
import { Link, useSearchParams } from "react-router-dom";

import { type Connection, type Graph, type Pending, ofConnection, usePolled } from "./api";
import { FleetView } from "./fleet";
import { GraphView } from "./graph";
import { ListView } from "./list";
import { Empty, Loading, Trouble, Words } from "./parts";
import { ConnectionContext, searchOf } from "./places";
import style from "./style.css";
import { TableView } from "./table";
import { pendingRows, plural } from "./words";

const VIEWS = { graph: "Graph", tables: "Tables", fleet: "Fleet" } as const;
type View = keyof typeof VIEWS;

export function Page(): ReactNode {
  const [asked, setAsked] = useSearchParams();
  const connections = usePolled<Connection[]>("pgtrickle/api/connections", 60);
  // Without a choice it opens on the first one that has stream tables.
  const connId = asked.get("conn_id") ?? connections.data?.[0]?.conn_id ?? null;
  const view: View = (asked.get("view") as View) in VIEWS ? (asked.get("view") as View) : "graph";
  const table = asked.get("stream_table");

  const choose = (next: string) => setAsked({ conn_id: next, view });
  return (
    <div className="pgt">
      <style>{style}</style>
      <header className="pgt-head">
        <h1>Stream tables</h1>
        <Chooser connections={connections.data} chosen={connId} choose={choose} />
      </header>
      {connId === null ? (
        <Nothing connections={connections.data} error={connections.error} again={connections.again} />
      ) : (
        <ConnectionContext.Provider value={connId}>
          <Database key={connId} connId={connId} view={view} table={table} part={asked.get("part")} />
        </ConnectionContext.Provider>
      )}
    </div>
  );
}

interface ChooserProps {
  connections: Connection[] | null;
  chosen: string | null;
  choose: (connId: string) => void;
}

function Chooser({ connections, chosen, choose }: ChooserProps): ReactNode {
  const [other, setOther] = useState<string | null>(null);
  if (!connections) return null;
  const listed = connections.some((connection) => connection.conn_id === chosen);
  if (other !== null) {
    return (
      <form
        className="pgt-bar"
        onSubmit={(event) => {
          event.preventDefault();
          if (other.trim()) choose(other.trim());
          setOther(null);
        }}
      >
        <label>
          <span>Id of the connection</span>
          <input autoFocus value={other} onChange={(event) => setOther(event.target.value)} />
        </label>
        <button type="submit">Show</button>
        <button type="button" onClick={() => setOther(null)}>
          Cancel
        </button>
      </form>
    );
  }
  return (
    <label className="pgt-bar">
      <span>Connection</span>
      <select
        value={chosen ?? ""}
        onChange={(event) => (event.target.value === "\u0000" ? setOther("") : choose(event.target.value))}
      >
        {chosen === null && <option value="">none</option>}
        {chosen !== null && !listed && <option value={chosen}>{chosen}</option>}
        {connections.map((connection) => (
          <option key={connection.conn_id} value={connection.conn_id}>
            {connection.conn_id}
            {saidOf(connection)}
          </option>
        ))}
        <option value={"\u0000"}>another one …</option>
      </select>
    </label>
  );
}

function saidOf(connection: Connection): string {
  if (connection.failed) return " (doesn't answer)";
  if (connection.stream_tables) return ` (${plural(connection.stream_tables, "table")})`;
  return connection.conn_type === "pgtrickle" ? " (no tables)" : ` (${connection.conn_type})`;
}

interface NothingProps {
  connections: Connection[] | null;
  error: string | null;
  again: () => void;
}

function Nothing({ connections, error, again }: NothingProps): ReactNode {
  if (error) return <Trouble text={error} again={again} />;
  if (!connections) return <Loading what="connections" />;
  return (
    <Empty>
      <p>There is no connection of type pgtrickle or postgres that you may see.</p>
      <p>
        Add one under <Link to="/connections">Admin, Connections</Link>, or choose “another one” if yours is kept in a secrets
        back end.
      </p>
    </Empty>
  );
}

interface DatabaseProps {
  connId: string;
  view: View;
  table: string | null;
  part: string | null;
}

function Database({ connId, view, table, part }: DatabaseProps): ReactNode {
  const [, setAsked] = useSearchParams();
  // A table's own view asks for itself.
  const graph = usePolled<Graph>(ofConnection(connId, "graph"), table === null ? 5 : 30);
  const pending = usePolled<Pending[]>(graph.data?.tables.length ? ofConnection(connId, "pending") : null, 10);
  const rows = useMemo(() => pendingRows(pending.data), [pending.data]);
  const open = useCallback((quoted: string) => setAsked({ conn_id: connId, stream_table: quoted }), [connId, setAsked]);
  useEffect(() => {
    // Somebody who follows a link begins to read at the top.
    document.querySelector(".pgt-head")?.scrollIntoView();
  }, [table, view]);

  return (
    <>
      <nav className="pgt-tabs" aria-label="Views">
        {(Object.keys(VIEWS) as View[]).map((key) => (
          <Link
            key={key}
            to={{ search: searchOf(connId, { view: key }) }}
            aria-current={table === null && key === view ? "page" : undefined}
          >
            {VIEWS[key]}
          </Link>
        ))}
        <Following at={graph.at} stale={graph.error !== null} />
      </nav>
      {table !== null ? (
        <TableView key={table} name={table} part={part} pending={pending.data} units={graph.data?.units ?? []} />
      ) : (
        <Whole connId={connId} view={view} graph={graph.data} error={graph.error} again={graph.again} pending={pending.data} rows={rows} open={open} />
      )}
      {pending.error && graph.data && !graph.error && (
        <p className="pgt-why">
          Pending changes aren't known: <Words text={pending.error} />
        </p>
      )}
    </>
  );
}

interface WholeProps {
  connId: string;
  view: View;
  graph: Graph | null;
  error: string | null;
  again: () => void;
  pending: Pending[] | null;
  rows: Map<string, number>;
  open: (quoted: string) => void;
}

function Whole({ connId, view, graph, error, again, pending, rows, open }: WholeProps): ReactNode {
  if (!graph) return error ? <Trouble text={error} again={again} /> : <Loading what="stream tables" />;
  return (
    <>
      {error && <Trouble text={`${error} What follows is as it was.`} again={again} />}
      {graph.tables.length === 0 ? (
        <Empty>
          <p>No stream tables yet.</p>
          <p>
            <Words
              text={
                graph.installed
                  ? "A DAG file that declares some, or `pgtrickle create`, makes the first."
                  : "This database has no catalog: the first run of a DAG with stream tables, or `pgtrickle install`, makes it."
              }
            />
          </p>
        </Empty>
      ) : view === "graph" ? (
        <GraphView graph={graph} pending={rows} open={open} />
      ) : view === "tables" ? (
        <ListView graph={graph} pending={pending} />
      ) : (
        <FleetView connId={connId} graph={graph} pending={pending} />
      )}
    </>
  );
}

/** Whether what is shown is of now. */
function Following({ at, stale }: { at: number | null; stale: boolean }): ReactNode {
  if (at === null) return null;
  const when = new Date(at).toLocaleTimeString("sv-SE");
  return (
    <span className="pgt-following">
      <i className={`pgt-dot pgt-${stale ? "bad" : "good"}`} aria-hidden="true" />
      {stale ? `as of ${when}` : `follows, ${when}`}
    </span>
  );
}
