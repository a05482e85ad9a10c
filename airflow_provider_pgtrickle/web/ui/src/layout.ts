// Where the boxes of the graph stand: each connected part is laid out by itself, then the parts are put in rows.
import { Graph, layout } from "@dagrejs/dagre";

import type { Read } from "./api";

export const WIDTH = 210;
export const HEIGHT = 46;
const GAP = 56;
/** A part that is so many times as high as wide is wrapped: a screen would show it as a thread. */
const TALL = 2.5;

export interface Placed {
  x: number;
  y: number;
}

export interface Line {
  from: string;
  to: string;
  path: string;
  middle: Placed;
}

export interface Layout {
  boxes: Map<string, Placed>;
  lines: Line[];
  width: number;
  height: number;
}

/** The id of a box: a source's name may be a stream table's, too. */
export function boxOf(read: Read): string {
  return read.source_pgt_id === null ? `source ${read.source}` : read.source;
}

export function arrange(tables: string[], reads: Read[]): Layout {
  const boxes = new Map<string, Placed>();
  const lines: Line[] = [];
  const parts = connected(tables, reads).map(arrangePart);
  parts.sort((a, b) => b.height - a.height || b.width - a.width);
  // Rows about as wide as the whole is high, times what a screen is.
  const area = parts.reduce((sum, part) => sum + (part.width + GAP) * (part.height + GAP), 0);
  const wide = Math.max(Math.sqrt(area * 1.7), ...parts.map((part) => part.width));
  let x = 0;
  let y = 0;
  let row = 0;
  let width = 0;
  for (const part of parts) {
    if (x > 0 && x + part.width > wide) {
      y += row + GAP;
      x = 0;
      row = 0;
    }
    for (const [id, at] of part.boxes) boxes.set(id, { x: at.x + x, y: at.y + y });
    for (const line of part.lines) lines.push(drawn(line.from, line.to, line.points.map((p) => ({ x: p.x + x, y: p.y + y }))));
    width = Math.max(width, x + part.width);
    row = Math.max(row, part.height);
    x += part.width + GAP;
  }
  return { boxes, lines, width, height: y + row };
}

interface Part {
  ids: string[];
  edges: [string, string][];
}

interface ArrangedPart {
  boxes: Map<string, Placed>;
  lines: { from: string; to: string; points: Placed[] }[];
  width: number;
  height: number;
}

function connected(tables: string[], reads: Read[]): Part[] {
  const parent = new Map<string, string>();
  const root = (id: string): string => {
    let at = id;
    for (let up = parent.get(at); up !== undefined && up !== at; up = parent.get(at)) at = up;
    return at;
  };
  for (const table of tables) parent.set(table, table);
  for (const read of reads) {
    const source = boxOf(read);
    if (!parent.has(source)) parent.set(source, source);
    parent.set(root(source), root(read.reader));
  }
  const parts = new Map<string, Part>();
  for (const id of [...parent.keys()].sort()) {
    const at = root(id);
    const part = parts.get(at) ?? { ids: [], edges: [] };
    part.ids.push(id);
    parts.set(at, part);
  }
  for (const read of reads) parts.get(root(read.reader))?.edges.push([boxOf(read), read.reader]);
  return [...parts.values()];
}

function arrangePart(part: Part): ArrangedPart {
  const graph = new Graph({ multigraph: false });
  // The tight tree is as good to the eye as the simplex, which takes seconds for hundreds of tables.
  graph.setGraph({ rankdir: "LR", nodesep: 16, ranksep: 84, ranker: "tight-tree" });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const id of part.ids) graph.setNode(id, { width: WIDTH, height: HEIGHT });
  for (const [from, to] of part.edges) graph.setEdge(from, to);
  layout(graph);
  const size = graph.graph() as { width?: number; height?: number };
  if ((size.height ?? 0) > TALL * (size.width ?? 1)) return wrapped(part, graph);
  const boxes = new Map<string, Placed>();
  for (const id of part.ids) {
    const at = graph.node(id) as unknown as Placed;
    boxes.set(id, { x: at.x - WIDTH / 2, y: at.y - HEIGHT / 2 });
  }
  const lines = graph.edges().map((edge) => {
    const between = (graph.edge(edge) as unknown as { points: Placed[] }).points.slice(1, -1);
    return { from: edge.v, to: edge.w, points: ends(boxes, edge.v, edge.w, between) };
  });
  return { boxes, lines, width: size.width ?? WIDTH, height: size.height ?? HEIGHT };
}

/** Each level in as many columns as make the part about as wide as a screen. */
function wrapped(part: Part, graph: Graph): ArrangedPart {
  const levels = new Map<number, { id: string; y: number }[]>();
  for (const id of part.ids) {
    const at = graph.node(id) as unknown as Placed;
    const level = levels.get(at.x) ?? [];
    level.push({ id, y: at.y });
    levels.set(at.x, level);
  }
  const ordered = [...levels].sort(([a], [b]) => a - b).map(([, level]) => level.sort((a, b) => a.y - b.y));
  const between = 26;
  const wide = (rows: number) =>
    ordered.reduce((sum, level) => sum + Math.ceil(level.length / rows) * (WIDTH + between) + GAP, -GAP - between);
  const high = (rows: number) => rows * (HEIGHT + 14) - 14;
  let rows = 4;
  while (high(rows) * 1.9 < wide(rows)) rows += 1;
  const boxes = new Map<string, Placed>();
  let x = 0;
  for (const level of ordered) {
    const columns = Math.ceil(level.length / rows);
    const each = Math.ceil(level.length / columns);
    level.forEach(({ id }, at) => {
      boxes.set(id, { x: x + Math.floor(at / each) * (WIDTH + between), y: (at % each) * (HEIGHT + 14) });
    });
    x += columns * (WIDTH + between) + GAP;
  }
  const lines = part.edges.map(([from, to]) => {
    return { from, to, points: ends(boxes, from, to, []) };
  });
  return { boxes, lines, width: wide(rows), height: high(rows) };
}

/** From the right of one box to the left of another. */
function ends(boxes: Map<string, Placed>, from: string, to: string, between: Placed[]): Placed[] {
  const start = boxes.get(from) as Placed;
  const end = boxes.get(to) as Placed;
  // The middle point of a line between neighbours would only bend it.
  const kept = between.length > 1 ? between : [];
  return [{ x: start.x + WIDTH, y: start.y + HEIGHT / 2 }, ...kept, { x: end.x, y: end.y + HEIGHT / 2 }];
}

/** A smooth line through the points. */
function drawn(from: string, to: string, points: Placed[]): Line {
  const round = (value: number) => Math.round(value * 10) / 10;
  let path = "";
  points.forEach((point, at) => {
    const before = points[at - 1];
    if (before === undefined) path = `M${round(point.x)} ${round(point.y)}`;
    else {
      const half = (before.x + point.x) / 2;
      path += `C${round(half)} ${round(before.y)} ${round(half)} ${round(point.y)} ${round(point.x)} ${round(point.y)}`;
    }
  });
  return { from, to, path, middle: halfway(points) };
}

function halfway(points: Placed[]): Placed {
  const right = points[Math.floor(points.length / 2)] ?? { x: 0, y: 0 };
  const left = points.length % 2 === 0 ? (points[points.length / 2 - 1] ?? right) : right;
  return { x: (left.x + right.x) / 2, y: (left.y + right.y) / 2 };
}
