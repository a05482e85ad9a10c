// Small things that several views show.
import { Children, Fragment, cloneElement, isValidElement, useState } from "react";
import type { ReactElement, ReactNode } from "react";

import type { Tone } from "./words";

export function Badge({ tone, children }: { tone: Tone; children: ReactNode }): ReactNode {
  return <span className={`pgt-badge pgt-${tone}`}>{children}</span>;
}

export function Trouble({ text, again }: { text: string; again?: () => void }): ReactNode {
  return (
    <div className="pgt-trouble" role="alert">
      <p>
        <Words text={text} />
      </p>
      {again && (
        <button type="button" onClick={again}>
          Try again
        </button>
      )}
    </div>
  );
}

/** A text whose commands stand between backticks, as the server and the command line write them. */
export function Words({ text }: { text: string }): ReactNode {
  return text.split(/`([^`]+)`/).map((part, at) => <Fragment key={at}>{at % 2 === 1 ? <code>{part}</code> : part}</Fragment>);
}

/** A table. `#` before a heading: its column holds figures. On a phone each row is a card, and a cell has its heading. */
export function List({ head, children }: { head: string[]; children: ReactNode }): ReactNode {
  const kind = (at: number) => (head[at]?.startsWith("#") ? "pgt-number" : undefined);
  const words = head.map((word) => word.replace("#", ""));
  const labelled = (row: ReactNode) => {
    if (!isValidElement(row)) return row;
    const { children: cells } = (row as ReactElement<{ children: ReactNode }>).props;
    return cloneElement(
      row,
      {},
      ...Children.toArray(cells).map((cell, at) => {
        const known = cell as ReactElement<{ className?: string }>;
        const said = { "data-label": words[at], className: known.props.className ?? kind(at) };
        return cloneElement(known, said as Partial<{ className?: string }>);
      }),
    );
  };
  return (
    <div className="pgt-scroll">
      <table>
        <thead>
          <tr>
            {words.map((word, at) => (
              <th key={word} scope="col" className={kind(at)}>
                {word}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{Children.map(children, labelled)}</tbody>
      </table>
    </div>
  );
}

export function Loading({ what }: { what: string }): ReactNode {
  return (
    <div className="pgt-loading" role="status">
      <i aria-hidden="true" />
      Loading {what} …
    </div>
  );
}

export function Empty({ children }: { children: ReactNode }): ReactNode {
  return <div className="pgt-empty">{children}</div>;
}

export function Copy({ text, what }: { text: string; what: string }): ReactNode {
  const [done, setDone] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setDone("Copied");
    } catch {
      // Without TLS browsers refuse: the text can still be selected.
      setDone("Select the text: this browser lets no page copy without TLS");
    }
  };
  return (
    <span className="pgt-copy">
      <button type="button" aria-label={`Copy ${what}`} onClick={() => void copy()}>
        Copy
      </button>
      <span role="status">{done}</span>
    </span>
  );
}

export function Sql({ title, text, open = false }: { title: string; text: string; open?: boolean }): ReactNode {
  return (
    <details className="pgt-sql" open={open}>
      <summary>
        {title} <span className="pgt-quiet">{text.split("\n").length} lines</span>
      </summary>
      <Copy text={text} what={title} />
      <pre tabIndex={0}>{text}</pre>
    </details>
  );
}
