// What somebody with the right to edit does. Each asks first; what was done is said, and read out.
import { useEffect, useRef, useState } from "react";
import type { ReactNode } from "react";
import { Link } from "react-router-dom";

import { type Detail, ofConnection, post } from "./api";
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

export function Actions({ connId, table, again }: { connId: string; table: Detail; again: () => void }): ReactNode {
  const [asked, setAsked] = useState<Offer | null>(null);
  const [done, setDone] = useState<Done | null>(null);
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
      <span className="pgt-done" role="status">
        {done?.text} {done?.run && <Link to={done.run}>Follow the run</Link>}
      </span>
      {asked && (
        <Dialog
          connId={connId}
          table={table}
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
  offer: Offer;
  close: (done: Done | null) => void;
}

function Dialog({ connId, table, offer, close }: DialogProps): ReactNode {
  const box = useRef<HTMLDialogElement>(null);
  const [reason, setReason] = useState("");
  const [upstream, setUpstream] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    box.current?.showModal();
  }, []);

  const refreshes = offer.action === "refresh" || offer.action === "full_refresh";
  const dag = refreshes ? table.dag : null;
  const selectable = SELECTABLE.test(table.name);

  const confirm = async () => {
    setBusy(true);
    setError(null);
    try {
      if (dag) {
        const conf: Record<string, unknown> = { full_refresh: offer.action === "full_refresh" };
        if (selectable) conf.tables = `${upstream ? "+" : ""}${table.name}`;
        const run = await post<{ dag_run_id: string }>(`api/v2/dags/${encodeURIComponent(dag.dag_id)}/dagRuns`, {
          logical_date: null,
          conf,
          note: `${offer.label} of ${table.name}, asked on the page of stream tables`,
        });
        close({
          text: `${dag.dag_id} was triggered.`,
          run: `/dags/${encodeURIComponent(dag.dag_id)}/runs/${encodeURIComponent(run.dag_run_id)}`,
        });
      } else {
        const body = { action: offer.action, name: table.quoted, reason: reason.trim() || null };
        const answer = await post<{ done: string }>(ofConnection(connId, "action"), body);
        close({ text: answer.done });
      }
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
        {dag && (
          <p>
            The DAG <strong>{dag.dag_id}</strong> is triggered{selectable ? " for this table" : ", for all of its tables"}.
            {dag.is_paused && " It is paused: the run waits until somebody unpauses it."}
          </p>
        )}
        {refreshes && (table.is_gated || isHalted(table)) && (
          <p>It is {table.is_gated ? "gated" : "halted"}: until that is ended, its refreshes are skipped.</p>
        )}
        {refreshes && !dag && <p>No DAG refreshes this table: the refresh is requested of whoever serves requests in its database.</p>}
        {dag && selectable && (
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
            {error}
          </p>
        )}
        <p className="pgt-buttons">
          <button type="button" onClick={() => box.current?.close()}>
            Cancel
          </button>
          <button type="submit" className="pgt-main" disabled={busy}>
            {busy ? "Asking …" : offer.label}
          </button>
        </p>
      </form>
    </dialog>
  );
}
