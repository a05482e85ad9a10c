// What somebody with the right to edit does. Each asks first; what was done is said, and read out.
import { useEffect, useRef, useState } from "react";
import type { ReactNode } from "react";
import { Link } from "react-router-dom";

import { type Detail, get, ofConnection, post } from "./api";
import { Words } from "./parts";
import { isHalted } from "./words";

type Action = "refresh" | "full_refresh" | "gate" | "ungate" | "resume";

interface Offer {
  action: Action;
  label: string;
  question: string;
}

interface Done {
  text: string;
  run?: string;
}

function offers(table: Detail): Offer[] {
  const halted = isHalted(table);
  const found: Offer[] = [];
  if (halted) found.push({ action: "resume", label: "Resume", question: "Its errors are forgotten, and its next refresh runs." });
  found.push(
    { action: "refresh", label: "Refresh", question: "What has changed is computed now." },
    { action: "full_refresh", label: "Full refresh", question: "The whole content is computed anew, however much that is." },
  );
  if (table.is_gated) found.push({ action: "ungate", label: "Open the gate", question: "Its next refresh runs." });
  else found.push({ action: "gate", label: "Gate", question: "Its refreshes are held back, also those of its schedule, until somebody opens the gate." });
  return found;
}

/** The tables' names that a DAG's param `tables` takes; another name would be read as a pattern. */
const SELECTABLE = /^[\w.$-]+$/;

interface Props {
  connId: string;
  table: Detail;
  /** What is refreshed with it in one commit. */
  together: string[];
  again: () => void;
}

export function Actions({ connId, table, together, again }: Props): ReactNode {
  const [asked, setAsked] = useState<Offer | null>(null);
  const [done, setDone] = useState<Done | null>(null);
  const said = useRef<HTMLSpanElement>(null);
  // The button that was pressed may be another one now, so the focus goes to what was done.
  useEffect(() => {
    if (done) said.current?.focus();
  }, [done]);
  const byDag = table.dag?.may_trigger ?? false;
  const may = (offer: Offer) =>
    offer.action === "refresh" || offer.action === "full_refresh" ? byDag || (table.may_edit && !table.dag) : table.may_edit;
  const offered = offers(table).filter(may);
  return (
    <div className="pgt-actions">
      {offered.map((offer) => (
        <button key={offer.action} type="button" onClick={() => setAsked(offer)}>
          {offer.label}
        </button>
      ))}
      {offered.length === 0 && <span className="pgt-quiet">You may look, and not edit.</span>}
      <span ref={said} className="pgt-done" role="status" tabIndex={-1}>
        {done && (
          <>
            <Words text={done.text} /> {done.run && <Link to={done.run}>Follow the run</Link>}
          </>
        )}
      </span>
      {asked && (
        <Dialog
          connId={connId}
          table={table}
          together={together}
          offer={asked}
          close={(result) => {
            setAsked(null);
            if (result) {
              setDone(result);
              again();
            }
          }}
        />
      )}
    </div>
  );
}

interface DialogProps {
  connId: string;
  table: Detail;
  together: string[];
  offer: Offer;
  close: (done: Done | null) => void;
}

function Dialog({ connId, table, together, offer, close }: DialogProps): ReactNode {
  const box = useRef<HTMLDialogElement>(null);
  const [reason, setReason] = useState("");
  const [upstream, setUpstream] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    box.current?.showModal();
  }, []);

  const refreshes = offer.action === "refresh" || offer.action === "full_refresh";
  const full = offer.action === "full_refresh";
  const dag = refreshes ? table.dag : null;
  const dagPath = dag && `api/v2/dags/${encodeURIComponent(dag.dag_id)}`;
  // A graph's own DAG says by its params that it can be asked for single tables. One of a user's own may do other
  // things, too, and what it was told would hold for all of them.
  const [takes, setTakes] = useState<boolean | null>(null);
  useEffect(() => {
    if (dagPath === null) return undefined;
    const stop = new AbortController();
    get<{ params: Record<string, unknown> | null }>(`${dagPath}/details`, stop.signal).then(
      ({ params }) => setTakes(params !== null && "tables" in params && "full_refresh" in params),
      (failure: Error) => stop.signal.aborted || setError(failure.message),
    );
    return () => stop.abort();
  }, [dagPath]);
  const triggered = dag && takes !== null && (takes || !full) ? dag : null;
  const selectable = takes === true && SELECTABLE.test(table.name);

  const confirm = async () => {
    setBusy(true);
    setError(null);
    try {
      let result: Done;
      if (triggered) {
        const conf: Record<string, unknown> = takes ? { full_refresh: full } : {};
        if (selectable) conf.tables = `${upstream ? "+" : ""}${table.name}`;
        const run = await post<{ dag_run_id: string }>(`${dagPath}/dagRuns`, {
          logical_date: null,
          conf,
          note: `${offer.label} of ${table.name}, asked on the page of stream tables`,
        });
        result = {
          text: `${triggered.dag_id} was triggered.`,
          run: `/dags/${encodeURIComponent(triggered.dag_id)}/runs/${encodeURIComponent(run.dag_run_id)}`,
        };
      } else {
        const body = { action: offer.action, name: table.quoted, reason: reason.trim() || null };
        const answer = await post<{ done: string }>(ofConnection(connId, "action"), body);
        result = { text: answer.done };
      }
      // Open, it would keep the focus from everything else.
      box.current?.close();
      close(result);
    } catch (failure) {
      setError((failure as Error).message);
      setBusy(false);
    }
  };

  return (
    <dialog ref={box} className="pgt-dialog" aria-labelledby="pgt-asked" onClose={() => close(null)}>
      <form
        method="dialog"
        onSubmit={(event) => {
          event.preventDefault();
          void confirm();
        }}
      >
        <h2 id="pgt-asked">
          {offer.label}: {table.name}
        </h2>
        <p>{offer.question}</p>
        {triggered && (
          <p>
            The DAG <strong>{triggered.dag_id}</strong> is triggered
            {selectable ? ` for ${["this table", ...together].join(", ")}` : takes ? ", for all of its tables" : ", with all that it does: it has no params that would name a table"}.
            {triggered.is_paused && " It is paused: the run waits until somebody unpauses it."}
          </p>
        )}
        {refreshes && !dag && <p>No DAG refreshes this table: the refresh is requested of whoever serves requests in its database.</p>}
        {dag && takes === false && full && (
          <p>
            The DAG <strong>{dag.dag_id}</strong> has no params that would name a table: the refresh is requested of whoever serves
            requests in its database.
          </p>
        )}
        {refreshes && <Obstacle table={table} full={full} byDag={triggered !== null} />}
        {selectable && (
          <label className="pgt-check">
            <input type="checkbox" checked={upstream} onChange={(event) => setUpstream(event.target.checked)} />
            with everything that it reads
          </label>
        )}
        {offer.action === "gate" && (
          <label>
            <span>Reason, for whoever wonders</span>
            <input value={reason} maxLength={300} onChange={(event) => setReason(event.target.value)} />
          </label>
        )}
        {error && (
          <p className="pgt-why" role="alert">
            <Words text={error} />
          </p>
        )}
        <p className="pgt-buttons">
          <button type="button" onClick={() => box.current?.close()}>
            Cancel
          </button>
          <button type="submit" className="pgt-main" disabled={busy || (dag !== null && takes === null)}>
            {busy ? "Asking …" : offer.label}
          </button>
        </p>
      </form>
    </dialog>
  );
}

/** What stands in the way of a refresh, or what the refresh will do to it. */
function Obstacle({ table, full, byDag }: { table: Detail; full: boolean; byDag: boolean }): ReactNode {
  if (table.is_gated) return <p>It is gated: until somebody opens the gate, its refreshes are skipped.</p>;
  if (byDag && table.effective_tier === "frozen") return <p>Its tier is frozen: until that is changed, its refreshes are skipped.</p>;
  if (!isHalted(table)) return null;
  if (full) return <p>It is halted: a full refresh that succeeds also resumes it.</p>;
  return <p>It is halted: until it is resumed, or refreshed in full, a refresh like this does nothing.</p>;
}
