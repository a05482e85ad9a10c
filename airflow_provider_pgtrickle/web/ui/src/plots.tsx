// Plots of the last refreshes, oldest on the left, all with the same steps: one bar or point for each refresh.
import type { ReactNode } from "react";

import type { Detail, Refresh } from "./api";
import { ending, milliseconds, number, seconds, short, time } from "./words";

const HIGH = 120;
const LEFT = 52;

/** Few refreshes fill the plot; many are scrolled, the newest in view. */
function stepOf(count: number): number {
  return Math.max(14, Math.min(40, Math.floor(480 / Math.max(1, count))));
}

interface Stack {
  key: string;
  tone: string;
  value: number;
}

interface PlotProps {
  title: string;
  summary: string;
  legend: { key: string; tone: string }[];
  refreshes: Refresh[];
  bars: (refresh: Refresh) => Stack[];
  said: (value: number) => string;
}

function Bars({ title, summary, legend, refreshes, bars, said }: PlotProps): ReactNode {
  const stacks = refreshes.map(bars);
  const step = stepOf(refreshes.length);
  const most = Math.max(1e-9, ...stacks.map((stack) => stack.reduce((sum, part) => sum + part.value, 0)));
  return (
    <Frame title={title} summary={summary} legend={legend} count={refreshes.length} most={most} said={said}>
      {refreshes.map((refresh, at) => {
        let top = HIGH;
        return (
          <g key={refresh.refresh_id} transform={`translate(${LEFT + at * step} 0)`}>
            <rect className="pgt-reach" width={step} height={HIGH} />
            {(stacks[at] ?? []).map(({ key, tone, value }) => {
              const high = (value / most) * HIGH;
              top -= high;
              return <rect key={key} className={`pgt-fill-${tone}`} x={2} y={top} width={step - 4} height={high} />;
            })}
            <title>{`${time(refresh.start_time)}: ${(stacks[at] ?? []).map((p) => `${p.key} ${said(p.value)}`).join(", ")}`}</title>
          </g>
        );
      })}
    </Frame>
  );
}

interface FrameProps {
  title: string;
  summary: string;
  legend: { key: string; tone: string }[];
  count: number;
  most: number;
  said: (value: number) => string;
  children: ReactNode;
}

function Frame({ title, summary, legend, count, most, said, children }: FrameProps): ReactNode {
  const width = LEFT + Math.max(count * stepOf(count), 200) + 8;
  return (
    <figure className="pgt-plot">
      <figcaption>
        <strong>{title}</strong>
        <span className="pgt-keys">
          {legend.map(({ key, tone }) => (
            <span key={key}>
              <i className={`pgt-key-${tone}`} aria-hidden="true" /> {key}
            </span>
          ))}
        </span>
      </figcaption>
      <div className="pgt-scroll pgt-newest" tabIndex={0} role="region" aria-label={title}>
        <svg width={width} height={HIGH + 12} role="img" aria-label={`${title}. ${summary}`}>
          {[0, 0.5, 1].map((share) => (
            <g key={share} className="pgt-axis">
              <line x1={LEFT} x2={width} y1={HIGH - share * HIGH + 0.5} y2={HIGH - share * HIGH + 0.5} />
              <text x={LEFT - 6} y={Math.max(10, HIGH - share * HIGH + 4)}>
                {said(most * share)}
              </text>
            </g>
          ))}
          {children}
        </svg>
      </div>
    </figure>
  );
}

/** A refresh's phases in their order, and each with its colour. tests/unit/test_page_bundle.py compares them with the engine's. */
export const PHASES = ["queue", "lock", "schema", "capture", "snapshot", "decide", "spark", "compute", "hand_on", "apply"];

export function Plots({ table }: { table: Detail }): ReactNode {
  const refreshes = [...table.history].reverse().filter((refresh) => refresh.status !== "RUNNING");
  if (refreshes.length === 0) return null;
  const last = refreshes[refreshes.length - 1] as Refresh;
  const took = (refresh: Refresh, phase: string) => refresh.phases?.[phase] ?? 0;
  // What never takes a millisecond is among the others.
  const phases = PHASES.map((key) => ({ key, tone: key })).filter(({ key }) => refreshes.some((refresh) => took(refresh, key) >= 1));
  const kinds = [...new Map(refreshes.map((refresh) => [ending(refresh).word, ending(refresh).tone]))];
  return (
    <div className="pgt-plots">
      <Bars
        title="Duration by phase"
        summary={`The last took ${milliseconds(last.duration_ms)}.`}
        legend={[...phases, { key: "other", tone: "none" }]}
        refreshes={refreshes}
        bars={(refresh) => {
          const spent = phases.map((phase) => ({ ...phase, value: took(refresh, phase.key) }));
          const known = spent.reduce((sum, part) => sum + part.value, 0);
          return [...spent, { key: "other", tone: "none", value: Math.max(0, (refresh.duration_ms ?? 0) - known) }];
        }}
        said={milliseconds}
      />
      <Bars
        title="Rows changed"
        summary={`The last inserted ${number(last.rows_inserted)}, updated ${number(last.rows_updated)} and deleted ${number(last.rows_deleted)}.`}
        legend={[
          { key: "inserted", tone: "good" },
          { key: "updated", tone: "busy" },
          { key: "deleted", tone: "bad" },
        ]}
        refreshes={refreshes}
        bars={(refresh) => [
          { key: "inserted", tone: "good", value: refresh.rows_inserted },
          { key: "updated", tone: "busy", value: refresh.rows_updated },
          { key: "deleted", tone: "bad", value: refresh.rows_deleted },
        ]}
        said={(value) => short(value)}
      />
      <Bars
        title="Action"
        summary={`The last was ${ending(last).word}.`}
        legend={kinds.map(([key, tone]) => ({ key, tone }))}
        refreshes={refreshes}
        bars={(refresh) => [{ key: ending(refresh).word, tone: ending(refresh).tone, value: 1 }]}
        said={() => ""}
      />
      <Lag table={table} refreshes={refreshes} />
    </div>
  );
}

/** How old the content had become when a refresh ended, and how old it was then. */
function Lag({ table, refreshes }: { table: Detail; refreshes: Refresh[] }): ReactNode {
  const points: { x: number; y: number; said: string }[] = [];
  const step = stepOf(refreshes.length);
  let content: number | null = null;
  refreshes.forEach((refresh, at) => {
    if (!refresh.end_time) return;
    const ended = Date.parse(refresh.end_time);
    const x = LEFT + at * step + step / 2;
    if (content !== null) points.push({ x, y: (ended - content) / 1000, said: `${time(refresh.end_time)}, before` });
    if (refresh.data_timestamp && refresh.status === "COMPLETED") {
      content = Date.parse(refresh.data_timestamp);
      points.push({ x, y: Math.max(0, (ended - content) / 1000), said: `${time(refresh.end_time)}, after` });
    }
  });
  const target = table.target_seconds;
  const most = Math.max(1, target ?? 0, ...points.map((point) => point.y));
  const high = (value: number) => HIGH - (value / most) * HIGH;
  return (
    <Frame
      title="Lag over time"
      summary={`Now ${seconds(table.staleness_seconds)}${target === null ? "" : `, target ${seconds(target)}`}.`}
      legend={[{ key: "lag", tone: "busy" }, ...(target === null ? [] : [{ key: "target", tone: "warn" }])]}
      count={refreshes.length}
      most={most}
      said={seconds}
    >
      {target !== null && <line className="pgt-target" x1={LEFT} x2="100%" y1={high(target)} y2={high(target)} />}
      <polyline className="pgt-lag" points={points.map((point) => `${point.x},${high(point.y)}`).join(" ")} />
      {points.map((point) => (
        <circle key={`${point.x} ${point.said}`} className="pgt-fill-busy" cx={point.x} cy={high(point.y)} r={2.5}>
          <title>{`${point.said}: ${seconds(point.y)}`}</title>
        </circle>
      ))}
    </Frame>
  );
}
