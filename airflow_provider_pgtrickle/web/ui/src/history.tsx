import { useEffect, useState } from "react";
import type { ReactNode } from "react";
import { Link } from "react-router-dom";

import { type Detail, type Refresh, get, ofConnection } from "./api";
import { Badge, Empty, Loading, Sql, Trouble, Words } from "./parts";
import { PHASES } from "./plots";
import { ago, ending, milliseconds, number, plural, time } from "./words";

/** The last refreshes, newest first: a bar each, that opens. */
export function History({ connId, table }: { connId: string; table: Detail }): ReactNode {
  const longest = Math.max(1, ...table.history.map((refresh) => refresh.duration_ms ?? 0));
  if (table.history.length === 0) return <Empty>It has never been refreshed.</Empty>;
  return (
    <ol className="pgt-history">
      {table.history.map((refresh) => (
        <Entry
          key={refresh.refresh_id}
          connId={connId}
          name={table.quoted}
          refresh={refresh}
          run={table.runs[refresh.refresh_id]}
          share={(refresh.duration_ms ?? 0) / longest}
        />
      ))}
    </ol>
  );
}

interface EntryProps {
  connId: string;
  name: string;
  refresh: Refresh;
  run: string | undefined;
  share: number;
}

function Entry({ connId, name, refresh, run, share }: EntryProps): ReactNode {
  const [open, setOpen] = useState(false);
  const end = ending(refresh);
  const rows = [
    refresh.rows_inserted && `+${number(refresh.rows_inserted)}`,
    refresh.rows_updated && `~${number(refresh.rows_updated)}`,
    refresh.rows_deleted && `−${number(refresh.rows_deleted)}`,
  ].filter(Boolean);
  return (
    <li>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <Badge tone={end.tone}>{end.word}</Badge>
          <time dateTime={refresh.start_time} title={time(refresh.start_time)}>
            {ago(refresh.start_time)}
          </time>
          <span className="pgt-length">
            <i className={`pgt-key-${end.tone}`} style={{ width: `${Math.max(1, share * 100)}%` }} aria-hidden="true" />
          </span>
          <span className="pgt-took">{milliseconds(refresh.duration_ms)}</span>
          <span className="pgt-rows">{rows.length > 0 ? `${rows.join(" ")} rows` : "no row changed"}</span>
          <span className="pgt-reason">{refresh.error_message ?? refresh.fallback_reason}</span>
        </summary>
        <dl className="pgt-facts">
          <Fact label="Began">{time(refresh.start_time)}</Fact>
          <Fact label="Content as of">{time(refresh.data_timestamp)}</Fact>
          <Fact label="Changes taken">{number(refresh.source_changes)}</Fact>
          <Fact label="Read">
            {plural(refresh.rows_read, "row")} in {plural(refresh.reads, "read")}, {plural(refresh.spark_jobs, "Spark job")}
          </Fact>
          <Fact label="By">
            {refresh.initiated_by ?? "–"}
            {run && (
              <>
                {" · "}
                <Link to={`/${run}`}>Airflow run and log</Link>
              </>
            )}
          </Fact>
          {refresh.way && (
            <Fact label="Computed">
              {WAYS[refresh.way] ? `${WAYS[refresh.way]} (${refresh.way})` : refresh.way}
              {refresh.actual_ms !== null && `, in ${milliseconds(refresh.actual_ms)}`}
            </Fact>
          )}
          {refresh.candidates && (
            <Fact label="Predicted">
              {Object.entries(refresh.candidates)
                .sort(([, one], [, other]) => one - other)
                .map(([way, ms]) => `${way} ${milliseconds(ms)}`)
                .join(", ")}
            </Fact>
          )}
          {refresh.unit.length > 1 && <Fact label="Together with">{refresh.unit.join(", ")}</Fact>}
          {refresh.phases && (
            <Fact label="Time">
              {Object.entries(refresh.phases)
                .sort(([one], [other]) => PHASES.indexOf(one) - PHASES.indexOf(other))
                .map(([phase, ms]) => `${phase} ${milliseconds(ms)}`)
                .join(", ")}
            </Fact>
          )}
          {refresh.fallback_reason && <Fact label="Reason">{refresh.fallback_reason}</Fact>}
        </dl>
        {refresh.error_message && (
          <p className="pgt-why">
            <Words text={refresh.error_message} />
          </p>
        )}
        {refresh.has_plan && open && <Plan connId={connId} name={name} id={refresh.refresh_id} />}
      </details>
    </li>
  );
}

/** A refresh's way in words: what computed it, and what carried its rows. */
const WAYS: Record<string, string> = {
  database: "in PostgreSQL, no row left it",
  pushed: "in PostgreSQL, its rows carried by Spark",
  sliced: "in PostgreSQL, in slices that Spark carried side by side",
  lowered: "on Spark, from what it read of the sources",
};

function Plan({ connId, name, id }: { connId: string; name: string; id: number }): ReactNode {
  const [plan, setPlan] = useState<string | null>(null);
  const [error, setError] = useState<string | null>(null);
  useEffect(() => {
    const stop = new AbortController();
    get<{ plan: string | null }>(ofConnection(connId, "plan", { name, refresh_id: String(id) }), stop.signal).then(
      (found) => setPlan(found.plan ?? ""),
      (failure: Error) => stop.signal.aborted || setError(failure.message),
    );
    return () => stop.abort();
  }, [connId, name, id]);
  if (error) return <Trouble text={error} />;
  if (plan === null) return <Loading what="the plan" />;
  return <Sql title="Plan and delta SQL" text={plan} />;
}

export function Fact({ label, children }: { label: string; children: ReactNode }): ReactNode {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  );
}
