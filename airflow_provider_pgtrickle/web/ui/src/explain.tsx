import { useEffect, useState } from "react";
import type { ReactNode } from "react";

import { type Explanation, type Planned, get, ofConnection } from "./api";
import { Badge, Copy, Loading, Sql, Trouble } from "./parts";
import { Fact } from "./history";
import { number } from "./words";

export function Explain({ connId, name }: { connId: string; name: string }): ReactNode {
  const [found, setFound] = useState<Explanation | null>(null);
  const [error, setError] = useState<string | null>(null);
  const [asked, setAsked] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    setError(null);
    get<Explanation>(ofConnection(connId, "explain", { name }), stop.signal).then(
      setFound,
      (failure: Error) => stop.signal.aborted || setError(failure.message),
    );
    return () => stop.abort();
  }, [connId, name, asked]);
  if (error) return <Trouble text={error} again={() => setAsked((n) => n + 1)} />;
  if (!found) return <Loading what="the explanation" />;
  return <Explained of={found} />;
}

function Explained({ of }: { of: Explanation }): ReactNode {
  return (
    <div className="pgt-explain">
      <p>
        {of.differentiable ? (
          <>
            <Badge tone="good">by differences</Badge> Its refreshes compute only what has changed.
          </>
        ) : (
          <>
            <Badge tone="warn">FULL</Badge> {of.reason}
          </>
        )}
      </p>
      <dl className="pgt-facts">
        <Fact label="Kept by">
          {of.sink}
          {of.because && ` (because ${of.because})`}
        </Fact>
        <Fact label="A row is known by">
          {of.identity.join(", ") || "there is only one"}
          {!of.keyed && of.identity.length > 0 && " (a bag: rows are matched on all columns)"}
        </Fact>
        {of.hidden.length > 0 && <Fact label="Hidden columns">{of.hidden.join(", ")}</Fact>}
      </dl>
      {of.missing_indexes.length > 0 && (
        <>
          <h3>Indexes that would help</h3>
          <ul className="pgt-plainlist">
            {of.missing_indexes.map((statement) => (
              <li key={statement} className="pgt-index">
                <code>{statement}</code>
                <Copy text={statement} what="the statement" />
              </li>
            ))}
          </ul>
        </>
      )}
      {of.writers.length > 0 && (
        <>
          <h3>What a statement on a source runs for it</h3>
          <ul>
            {of.writers.map((writer) => (
              <li key={writer}>{writer}</li>
            ))}
          </ul>
        </>
      )}
      {of.ways.length > 0 && (
        <>
          <h3>Ways to refresh it</h3>
          <ul>
            {of.ways.map((way) => (
              <li key={way}>{way}</li>
            ))}
          </ul>
        </>
      )}
      <h3>Operators</h3>
      <Tree branches={parsed(of.operator_tree)} />
      {of.planned && (
        <>
          <h3>PostgreSQL's plan of the whole query, with its costs</h3>
          <Tree branches={[planned(of.planned)]} />
        </>
      )}
      <h3>SQL</h3>
      {of.statements.map((statement, at) => (
        <Sql key={at} title={statement.title} text={statement.sql} />
      ))}
      {of.parts.map((part) => (
        <details key={part.name} className="pgt-part">
          <summary>Kept by itself as {part.name}</summary>
          <Sql title="Its query" text={part.query} />
          <Explained of={part} />
        </details>
      ))}
    </div>
  );
}

interface Branch {
  text: string;
  figures: string;
  inputs: Branch[];
}

/** Two spaces for each level, as `pgtrickle explain` prints it. */
function parsed(text: string): Branch[] {
  const top: Branch[] = [];
  const path: Branch[] = [];
  for (const line of text.split("\n").filter((one) => one.trim() !== "")) {
    const depth = Math.floor((line.length - line.trimStart().length) / 2);
    const branch: Branch = { text: line.trim(), figures: "", inputs: [] };
    path.length = Math.min(depth, path.length);
    const above = path[path.length - 1];
    (above ? above.inputs : top).push(branch);
    path.push(branch);
  }
  return top;
}

function planned(node: Planned): Branch {
  return {
    text: node.relation ? `${node.kind} on ${node.relation}` : node.kind,
    figures: `cost ${number(Math.round(node.cost))}, ${number(node.rows)} rows`,
    inputs: node.inputs.map(planned),
  };
}

function Tree({ branches }: { branches: Branch[] }): ReactNode {
  return (
    <ul className="pgt-tree">
      {branches.map((branch, at) => (
        <li key={at}>
          {branch.inputs.length > 0 ? (
            <details open>
              <summary>
                <code>{branch.text}</code> <span className="pgt-quiet">{branch.figures}</span>
              </summary>
              <Tree branches={branch.inputs} />
            </details>
          ) : (
            <span className="pgt-leaf">
              <code>{branch.text}</code> <span className="pgt-quiet">{branch.figures}</span>
            </span>
          )}
        </li>
      ))}
    </ul>
  );
}
