// Small things that several views show.
import { useState } from "react";
import type { ReactNode } from "react";

import type { Tone } from "./words";

export function Badge({ tone, children }: { tone: Tone; children: ReactNode }): ReactNode {
  return <span className={`pgt-badge pgt-${tone}`}>{children}</span>;
}

export function Trouble({ text, again }: { text: string; again?: () => void }): ReactNode {
  return (
    <div className="pgt-trouble" role="alert">
      <p>{text}</p>
      {again && (
        <button type="button" onClick={again}>
          Try again
        </button>
      )}
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
