import { memo, useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { KeyboardEvent, PointerEvent as Pointed, ReactNode } from "react";

import type { Graph, Table } from "./api";
import { HEIGHT, WIDTH, arrange, boxOf, type Placed } from "./layout";
import { condition, freshness, lag, lastEnding, number, pendingKey, plural, short, shorten, type Verdict } from "./words";

export type Colouring = "lag" | "status" | "action";

const COLOURINGS: Record<Colouring, { title: string; of: (table: Table) => Verdict; legend: Verdict[] }> = {
  lag: {
    title: "Lag against target",
    of: lag,
    legend: [
      { tone: "good", word: "fresh" },
      { tone: "warn", word: "late" },
      { tone: "bad", word: "very late or empty" },
      { tone: "live", word: "live" },
      { tone: "none", word: "on demand, frozen or no target" },
    ],
  },
  status: {
    title: "Status",
    of: condition,
    legend: [
      { tone: "good", word: "active" },
      { tone: "busy", word: "refreshing" },
      { tone: "warn", word: "gated or failing" },
      { tone: "bad", word: "error or suspended" },
      { tone: "none", word: "initializing" },
    ],
  },
  action: {
    title: "Last action",
    of: lastEnding,
    legend: [
      { tone: "good", word: "DIFFERENTIAL, TOPK" },
      { tone: "warn", word: "FULL, REINITIALIZE" },
      { tone: "live", word: "IMMEDIATE" },
      { tone: "bad", word: "FAILED" },
      { tone: "none", word: "NO_DATA, SKIP, never" },
    ],
  },
};

/** Two sheets. */
const TOGETHER = "M0.5 3.5h7v7h-7zM3.5 3.5v-3h7v7h-3";

interface View {
  x: number;
  y: number;
  scale: number;
}

const CLOSEST = 2.5;
const FARTHEST = 0.03;
const READABLE = 0.9;

interface Props {
  graph: Graph;
  pending: Map<string, number>;
  open: (quoted: string) => void;
}

export function GraphView({ graph, pending, open }: Props): ReactNode {
  const [colouring, setColouring] = useState<Colouring>("lag");
  const [sought, setSought] = useState("");
  const [chosen, setChosen] = useState<string | null>(null);
  const frame = useRef<SVGSVGElement>(null);
  const canvas = useRef<SVGGElement>(null);
  const view = useRef<View>({ x: 0, y: 0, scale: 1 });

  const tables = useMemo(() => new Map(graph.tables.map((table) => [table.name, table])), [graph]);
  // The picture moves only where tables or their queries do, not with each answer.
  const shape = JSON.stringify([graph.tables.map((t) => t.name), graph.reads.map((r) => [r.reader, r.source, r.source_pgt_id])]);
  const placed = useMemo(() => arrange(graph.tables.map((t) => t.name), graph.reads), [shape]);
  const units = useMemo(() => {
    const found = new Map<string, number>();
    graph.units.forEach((unit, at) => unit.forEach((name) => found.set(name, at + 1)));
    return found;
  }, [shape, graph.units.length]);
  const frames = useMemo(() => framed(graph.units, placed.boxes), [placed, graph.units.length]);
  const related = useMemo(() => (chosen === null ? null : reached(chosen, graph)), [chosen, shape]);
  const modes = useMemo(
    () => new Map(graph.reads.map((read) => [pendingKey(read.reader, boxOf(read)), read])),
    [shape],
  );

  // The view moves without React, which would draw five hundred boxes anew for each pixel.
  const show = useCallback((next: View) => {
    view.current = next;
    canvas.current?.setAttribute("transform", `translate(${next.x} ${next.y}) scale(${next.scale})`);
    frame.current?.setAttribute("data-far", next.scale < 0.22 ? "very" : next.scale < 0.5 ? "yes" : "no");
  }, []);

  const fit = useCallback(() => {
    const size = frame.current?.getBoundingClientRect();
    if (!size || size.width === 0) return;
    const scale = Math.min(1, (size.width - 32) / placed.width, (size.height - 32) / placed.height);
    const kept = Math.max(scale, FARTHEST);
    show({ x: (size.width - placed.width * kept) / 2, y: (size.height - placed.height * kept) / 2, scale: kept });
  }, [placed, show]);

  // It opens whole where that can be read or is a map; on a phone it begins at the top left, large enough to be read.
  const begin = useCallback(() => {
    fit();
    const size = frame.current?.getBoundingClientRect();
    if (size && size.width < 600 && view.current.scale < READABLE) {
      show({ x: 12, y: Math.max(12, (size.height - placed.height * READABLE) / 2), scale: READABLE });
    }
  }, [fit, placed, show]);

  useEffect(begin, [begin]);

  const zoom = useCallback(
    (factor: number, at?: Placed) => {
      const size = frame.current?.getBoundingClientRect();
      if (!size) return;
      const { x, y, scale } = view.current;
      const centre = at ?? { x: size.width / 2, y: size.height / 2 };
      const next = Math.min(CLOSEST, Math.max(FARTHEST, scale * factor));
      const by = next / scale;
      show({ x: centre.x - (centre.x - x) * by, y: centre.y - (centre.y - y) * by, scale: next });
    },
    [show],
  );

  const centre = useCallback(
    (id: string) => {
      const box = placed.boxes.get(id);
      const size = frame.current?.getBoundingClientRect();
      if (!box || !size) return;
      const scale = Math.max(view.current.scale, 0.8);
      show({
        x: size.width / 2 - (box.x + WIDTH / 2) * scale,
        y: size.height / 2 - (box.y + HEIGHT / 2) * scale,
        scale,
      });
    },
    [placed, show],
  );

  // React listens to the wheel passively, and the page would scroll along.
  useEffect(() => {
    const svg = frame.current;
    if (!svg) return undefined;
    const turned = (event: WheelEvent) => {
      event.preventDefault();
      const size = svg.getBoundingClientRect();
      zoom(Math.exp(-event.deltaY * 0.0015), { x: event.clientX - size.left, y: event.clientY - size.top });
    };
    svg.addEventListener("wheel", turned, { passive: false });
    return () => svg.removeEventListener("wheel", turned);
  }, [zoom]);

  const fingers = useRef(new Map<number, Placed>());
  const dragged = useRef(0);
  const down = (event: Pointed<SVGSVGElement>) => {
    fingers.current.set(event.pointerId, { x: event.clientX, y: event.clientY });
    dragged.current = 0;
  };
  const moved = (event: Pointed<SVGSVGElement>) => {
    const before = fingers.current.get(event.pointerId);
    if (!before) return;
    const dx = event.clientX - before.x;
    const dy = event.clientY - before.y;
    dragged.current += Math.abs(dx) + Math.abs(dy);
    // A click on a box must reach the box, so the pointer is captured only when it has really moved.
    if (dragged.current > 4 && !event.currentTarget.hasPointerCapture(event.pointerId)) {
      event.currentTarget.setPointerCapture(event.pointerId);
    }
    const others = [...fingers.current].filter(([id]) => id !== event.pointerId);
    fingers.current.set(event.pointerId, { x: event.clientX, y: event.clientY });
    const other = others[0]?.[1];
    if (other) {
      const size = event.currentTarget.getBoundingClientRect();
      const was = Math.hypot(before.x - other.x, before.y - other.y);
      const is = Math.hypot(event.clientX - other.x, event.clientY - other.y);
      if (was > 0) zoom(is / was, { x: other.x - size.left, y: other.y - size.top });
      return;
    }
    show({ ...view.current, x: view.current.x + dx, y: view.current.y + dy });
  };
  const up = (event: Pointed<SVGSVGElement>) => fingers.current.delete(event.pointerId);

  const activate = useCallback(
    (id: string) => {
      const table = tables.get(id);
      if (table) open(table.quoted);
      else setChosen((was) => (was === id ? null : id));
    },
    [tables, open],
  );
  const clicked = useCallback(
    (id: string) => {
      if (dragged.current <= 4) activate(id);
    },
    [activate],
  );

  // One tab stop for the whole graph; the arrows go from box to box.
  const focused = useRef<string | null>(null);
  const focus = useCallback(
    (id: string) => {
      const box = canvas.current?.querySelector<SVGGElement>(`[data-box="${CSS.escape(id)}"]`);
      if (!box) return;
      canvas.current?.querySelectorAll("[data-box][tabindex='0']").forEach((old) => old.setAttribute("tabindex", "-1"));
      box.setAttribute("tabindex", "0");
      focused.current = id;
      centre(id);
      box.focus({ preventScroll: true });
    },
    [centre],
  );
  const keyed = (event: KeyboardEvent<SVGSVGElement>) => {
    const id = (event.target as Element).getAttribute?.("data-box");
    const steps: Record<string, [number, number]> = {
      ArrowRight: [1, 0],
      ArrowLeft: [-1, 0],
      ArrowDown: [0, 1],
      ArrowUp: [0, -1],
    };
    const step = steps[event.key];
    if (step && id) {
      const next = neighbour(placed.boxes, id, step);
      if (next) focus(next);
    } else if (event.key === "Enter" && id) activate(id);
    else if (event.key === "+" || event.key === "=") zoom(1.3);
    else if (event.key === "-") zoom(1 / 1.3);
    else if (event.key === "0") fit();
    else if (event.key === "Escape" && chosen !== null) setChosen(null);
    else return;
    event.preventDefault();
  };

  const wanted = sought.trim().toLowerCase();
  const matches = useMemo(
    () => (wanted === "" ? null : [...placed.boxes.keys()].filter((id) => title(id).toLowerCase().includes(wanted))),
    [wanted, placed],
  );
  const match = matches === null ? null : new Set(matches);
  const first = useMemo(() => leftmost(placed.boxes), [placed]);
  const choice = COLOURINGS[colouring];

  return (
    <section className="pgt-graph" aria-label="Graph of stream tables">
      <div className="pgt-bar">
        <label>
          <span>Search</span>
          <input
            type="search"
            value={sought}
            placeholder="part of a name"
            onChange={(event) => setSought(event.target.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter" && matches?.[0]) focus(matches[0]);
            }}
          />
        </label>
        <span className="pgt-quiet" role="status">
          {matches && plural(matches.length, "match", "matches")}
        </span>
        <label>
          <span>Colour by</span>
          <select value={colouring} onChange={(event) => setColouring(event.target.value as Colouring)}>
            {Object.entries(COLOURINGS).map(([key, { title: words }]) => (
              <option key={key} value={key}>
                {words}
              </option>
            ))}
          </select>
        </label>
        <span className="pgt-buttons">
          <button type="button" aria-label="Zoom out" onClick={() => zoom(1 / 1.3)}>
            −
          </button>
          <button type="button" aria-label="Zoom in" onClick={() => zoom(1.3)}>
            +
          </button>
          <button type="button" onClick={fit}>
            Fit
          </button>
        </span>
      </div>
      <ul className="pgt-legend" aria-label={`Colours: ${choice.title}`}>
        {choice.legend.map(({ tone, word }) => (
          <li key={word}>
            <i className={`pgt-dot pgt-${tone}`} aria-hidden="true" />
            {word}
          </li>
        ))}
        {graph.units.length > 0 && (
          <li>
            <svg className="pgt-unit" width={12} height={11} aria-hidden="true">
              <path d={TOGETHER} />
            </svg>{" "}
            refreshed together
          </li>
        )}
        <li>figures on lines: pending changes</li>
      </ul>
      <svg
        ref={frame}
        className="pgt-canvas"
        role="group"
        aria-label={`${plural(graph.tables.length, "stream table")}. Arrow keys go from box to box, Enter opens, plus and minus zoom.`}
        onPointerDown={down}
        onPointerMove={moved}
        onPointerUp={up}
        onPointerCancel={up}
        onKeyDown={keyed}
      >
        <g ref={canvas}>
          {frames.map(({ names, x, y, width, height }) => (
            <rect key={names} className="pgt-together" x={x} y={y} width={width} height={height} rx={10}>
              <title>{`Refreshed together: ${names}`}</title>
            </rect>
          ))}
          {placed.lines.map((line) => {
            const read = modes.get(pendingKey(line.to, line.from));
            return (
              <Edge
                key={`${line.from}\u0000${line.to}`}
                path={line.path}
                x={line.middle.x}
                y={line.middle.y}
                pending={read ? (pending.get(pendingKey(read.reader, read.source)) ?? 0) : 0}
                untracked={read?.cdc_mode === "NONE"}
                live={tables.get(line.to)?.is_live ?? false}
                dim={related !== null && !(related.has(line.from) && related.has(line.to))}
              />
            );
          })}
          {[...placed.boxes].map(([id, at]) => {
            const table = tables.get(id);
            const verdict = table ? choice.of(table) : null;
            return (
              <Box
                key={id}
                id={id}
                x={at.x}
                y={at.y}
                tone={verdict?.tone ?? "source"}
                note={table ? noteOf(table, colouring, verdict as Verdict) : (kindOf(graph, id) ?? "source")}
                flag={table && colouring !== "status" ? flagOf(table) : ""}
                flagTone={table ? condition(table).tone : "none"}
                unit={units.get(id) ?? 0}
                label={labelOf(id, table, units.get(id))}
                stop={(focused.current ?? first) === id}
                dim={(match !== null && !match.has(id)) || (related !== null && !related.has(id))}
                chosen={chosen === id || (match?.has(id) ?? false)}
                clicked={clicked}
              />
            );
          })}
        </g>
      </svg>
      {chosen !== null && (
        <p className="pgt-quiet" role="status">
          {title(chosen)} is read by {plural((related?.size ?? 1) - 1, "table")}.{" "}
          <button type="button" className="pgt-plain" onClick={() => setChosen(null)}>
            Show all
          </button>
        </p>
      )}
    </section>
  );
}

function title(id: string): string {
  return id.startsWith("source ") ? id.slice(7) : id;
}

function kindOf(graph: Graph, id: string): string | undefined {
  const read = graph.reads.find((one) => boxOf(one) === id);
  return read?.source_type.toLowerCase().replaceAll("_", " ");
}

function noteOf(table: Table, colouring: Colouring, verdict: Verdict): string {
  if (colouring === "status") return verdict.word;
  if (colouring === "action") return verdict.word;
  return freshness(table);
}

/** What is the matter, whatever the colours say. */
function flagOf(table: Table): string {
  const { tone, word } = condition(table);
  return tone === "good" || word === "initializing" ? "" : word;
}

function labelOf(id: string, table: Table | undefined, unit: number | undefined): string {
  if (!table) return `Source ${title(id)}`;
  const together = unit ? `, refreshed with others in unit ${unit}` : "";
  return `${id}: ${condition(table).word}, ${lag(table).word}, ${freshness(table)}, last ${lastEnding(table).word}${together}`;
}

/** All that is computed from this, however far. */
function reached(from: string, graph: Graph): Set<string> {
  const found = new Set([from]);
  const waiting = [from];
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    for (const read of graph.reads) {
      if (boxOf(read) === at && !found.has(read.reader)) {
        found.add(read.reader);
        waiting.push(read.reader);
      }
    }
  }
  return found;
}

/** A frame around each unit that stands by itself; of others the numbers on the boxes tell. */
function framed(units: string[][], boxes: Map<string, Placed>) {
  const room = 10;
  return units.flatMap((unit) => {
    const own = unit.flatMap((name) => boxes.get(name) ?? []);
    if (own.length < 2) return [];
    const x = Math.min(...own.map((at) => at.x)) - room;
    const y = Math.min(...own.map((at) => at.y)) - room;
    const right = Math.max(...own.map((at) => at.x)) + WIDTH + room;
    const bottom = Math.max(...own.map((at) => at.y)) + HEIGHT + room;
    const within = [...boxes].filter(
      ([, at]) => at.x < right && at.x + WIDTH > x && at.y < bottom && at.y + HEIGHT > y,
    );
    if (within.length > own.length) return [];
    return [{ names: unit.join(", "), x, y, width: right - x, height: bottom - y }];
  });
}

function leftmost(boxes: Map<string, Placed>): string | undefined {
  let best: string | undefined;
  let least = Infinity;
  for (const [id, at] of boxes) {
    if (at.x * 3 + at.y < least) {
      least = at.x * 3 + at.y;
      best = id;
    }
  }
  return best;
}

function neighbour(boxes: Map<string, Placed>, id: string, [dx, dy]: [number, number]): string | undefined {
  const from = boxes.get(id);
  if (!from) return undefined;
  let best: string | undefined;
  let least = Infinity;
  for (const [other, at] of boxes) {
    const along = (at.x - from.x) * dx + (at.y - from.y) * dy;
    if (other === id || along < 10) continue;
    const across = Math.abs((at.x - from.x) * dy) + Math.abs((at.y - from.y) * dx);
    const far = along + 2 * across;
    if (far < least) {
      least = far;
      best = other;
    }
  }
  return best;
}

interface EdgeProps {
  path: string;
  x: number;
  y: number;
  pending: number;
  untracked: boolean;
  live: boolean;
  dim: boolean;
}

const Edge = memo(function Edge({ path, x, y, pending, untracked, live, dim }: EdgeProps): ReactNode {
  const kind = `${untracked ? " pgt-untracked" : ""}${live ? " pgt-follows" : ""}${pending > 0 ? " pgt-waits" : ""}${dim ? " pgt-dim" : ""}`;
  const text = short(pending);
  return (
    <g className={`pgt-edge${kind}`}>
      <path d={path} />
      {pending > 0 && (
        <g className="pgt-count" transform={`translate(${x} ${y})`}>
          <rect x={-(text.length * 3.6 + 7)} y={-10} width={text.length * 7.2 + 14} height={20} rx={10} />
          <text y={4}>{text}</text>
          <title>{`${number(pending)} pending changes`}</title>
        </g>
      )}
    </g>
  );
});

interface BoxProps {
  id: string;
  x: number;
  y: number;
  tone: string;
  note: string;
  flag: string;
  flagTone: string;
  unit: number;
  label: string;
  stop: boolean;
  dim: boolean;
  chosen: boolean;
  clicked: (id: string) => void;
}

const Box = memo(function Box(props: BoxProps): ReactNode {
  const { id, x, y, tone, note, flag, flagTone, unit, label, stop, dim, chosen, clicked } = props;
  const name = shorten(title(id));
  const room = 26 - (flag ? flag.length : 0);
  const shown = name.length > room ? `${name.slice(0, room - 1)}…` : name;
  return (
    <g
      className={`pgt-box pgt-${tone}${dim ? " pgt-dim" : ""}${chosen ? " pgt-chosen" : ""}`}
      transform={`translate(${x} ${y})`}
      onClick={() => clicked(id)}
    >
      <title>{label}</title>
      {/* The link holds what names it; the rest is in its label in words, and would be read twice. */}
      <g data-box={id} role={tone === "source" ? "button" : "link"} tabIndex={stop ? 0 : -1} aria-label={label}>
        <rect className="pgt-body" width={WIDTH} height={HEIGHT} rx={6} />
        <rect className="pgt-strip" width={6} height={HEIGHT} rx={3} />
        <text className="pgt-name" x={16} y={19}>
          {shown}
        </text>
      </g>
      <text className="pgt-note" x={16} y={36} aria-hidden="true">
        {note}
      </text>
      {unit > 0 && (
        <g className="pgt-unit" aria-hidden="true" transform={`translate(${WIDTH - 12} 36)`}>
          <path d={TOGETHER} transform="translate(-20 -9)" />
          <text>{unit}</text>
        </g>
      )}
      {flag && (
        <text className={`pgt-flag pgt-${flagTone}`} aria-hidden="true" x={WIDTH - 10} y={19}>
          {flag}
        </text>
      )}
    </g>
  );
});
