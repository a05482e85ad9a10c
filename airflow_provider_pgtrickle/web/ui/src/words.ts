// Figures in words, and what they mean: one place, so that all views say the same.
import type { Graph, Owner, Pending, Table } from "./api";

export function seconds(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (value < 1) return "0 s";
  if (value < 90) return `${Math.round(value)} s`;
  if (value < 5400) return `${Math.round(value / 60)} min`;
  if (value < 129600) return `${trim(value / 3600)} h`;
  return `${trim(value / 86400)} d`;
}

export function milliseconds(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (value < 1) return value === 0 ? "0 ms" : `${value.toFixed(2)} ms`;
  if (value < 1000) return `${Math.round(value)} ms`;
  return value < 60000 ? `${trim(value / 1000)} s` : seconds(value / 1000);
}

export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let left = value;
  let unit = 0;
  while (left >= 1000 && unit < units.length - 1) {
    left /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? left : trim(left)} ${units[unit]}`;
}

export function number(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : value.toLocaleString("en-US");
}

/** Short, for the narrow: 1.2 M. */
export function short(value: number): string {
  if (value < 1000) return String(Math.round(value));
  const units = ["k", "M", "G", "T"];
  let left = value;
  let unit = -1;
  while (left >= 1000 && unit < units.length - 1) {
    left /= 1000;
    unit += 1;
  }
  return `${trim(left)} ${units[unit]}`;
}

export function time(value: string | null | undefined): string {
  return value ? new Date(value).toLocaleString("sv-SE") : "–";
}

export function ago(value: string | null | undefined): string {
  if (!value) return "never";
  return `${seconds(Math.max(0, (Date.now() - Date.parse(value)) / 1000))} ago`;
}

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${number(count)} ${count === 1 ? one : many}`;
}

function trim(value: number): string {
  return value >= 100 ? String(Math.round(value)) : String(Number(value.toFixed(1)));
}

/** How a thing fares: the colours of Airflow's theme have the same names. */
export type Tone = "good" | "warn" | "bad" | "live" | "busy" | "none";

export interface Verdict {
  tone: Tone;
  word: string;
}

const HALTED = ["ERROR", "SUSPENDED"];

export function isHalted(table: Pick<Table, "status">): boolean {
  return HALTED.includes(table.status);
}

type Aged = Pick<Table, "is_live" | "is_populated" | "staleness_seconds" | "target_seconds" | "effective_tier">;

/** What is refreshed by no schedule may be old. */
const UNHURRIED: Record<string, string> = { cold: "on demand", frozen: "frozen" };

export function lag(table: Aged): Verdict {
  if (table.is_live) return { tone: "live", word: "live" };
  if (!table.is_populated || table.staleness_seconds === null) return { tone: "bad", word: "empty" };
  if (table.target_seconds === null) return { tone: "none", word: UNHURRIED[table.effective_tier] ?? "no target" };
  const ratio = table.staleness_seconds / table.target_seconds;
  if (ratio <= 1) return { tone: "good", word: "fresh" };
  return ratio <= 2 ? { tone: "warn", word: "late" } : { tone: "bad", word: "very late" };
}

export function condition(table: Pick<Table, "status" | "is_gated" | "is_running" | "consecutive_errors">): Verdict {
  if (isHalted(table)) return { tone: "bad", word: table.status.toLowerCase() };
  if (table.is_gated) return { tone: "warn", word: "gated" };
  if (table.is_running) return { tone: "busy", word: "refreshing" };
  if (table.consecutive_errors > 0) return { tone: "warn", word: "failing" };
  if (table.status === "INITIALIZING") return { tone: "none", word: "initializing" };
  return { tone: "good", word: table.status.toLowerCase() };
}

const ACTIONS: Record<string, Tone> = {
  NO_DATA: "none",
  SKIP: "none",
  DIFFERENTIAL: "good",
  TOPK: "good",
  IMMEDIATE: "live",
  FULL: "warn",
  REINITIALIZE: "warn",
};

export function action(word: string | null): Verdict {
  return { tone: (word && ACTIONS[word]) || "none", word: word ?? "none" };
}

/** What a refresh ended as. */
export function ending(refresh: { status: string; action: string | null }): Verdict {
  if (refresh.status === "FAILED") return { tone: "bad", word: "FAILED" };
  if (refresh.status === "RUNNING") return { tone: "busy", word: "RUNNING" };
  return action(refresh.action);
}

/** What the last refresh of a table ended as. */
export function lastEnding(table: Pick<Table, "last_status" | "last_action">): Verdict {
  return table.last_status === null ? { tone: "none", word: "never" } : ending({ status: table.last_status, action: table.last_action });
}

export function freshness(table: Aged): string {
  // What writers maintain is behind only if it reads what refreshes write.
  if (table.is_live) return (table.staleness_seconds ?? 0) < 1 ? "live" : `live, ${seconds(table.staleness_seconds)} behind`;
  if (table.staleness_seconds === null) return "empty";
  const target = table.target_seconds === null ? "" : ` of ${seconds(table.target_seconds)}`;
  return `${seconds(table.staleness_seconds)}${target}`;
}

/** Why nothing refreshes a table any more; null where somebody does, or nobody ever did. */
export function orphan({ owners, gone }: Pick<Graph, "owners" | "gone">, name: string): string | null {
  return orphaned(owners[name] ?? null, gone[name] ?? null);
}

export function orphaned(owner: Owner | null, gone: string | null): string | null {
  if (owner?.removed_at) return `No file declares it any more: ${owner.graph} in ${owner.file} did until ${time(owner.removed_at)}.`;
  return gone === null ? null : `This Airflow has no DAG ${gone}, whose table it is.`;
}

/** The tier in words, and what tier `auto` means now. */
export function tier(table: Pick<Table, "tier" | "effective_tier">): string {
  const meant = MEANT[table.effective_tier];
  const now = table.tier === table.effective_tier ? table.tier : `${table.tier}, now ${table.effective_tier}`;
  return meant ? `${now}: ${meant}` : now;
}

const MEANT: Record<string, string> = {
  warm: "its schedule counts twice",
  cold: "refreshed on demand",
  frozen: "not refreshed",
};

export function pendingKey(reader: string, source: string): string {
  return `${reader}\u0000${source}`;
}

export function pendingRows(found: Pending[] | null): Map<string, number> {
  return new Map((found ?? []).map((row) => [pendingKey(row.stream_table, row.source_table), row.pending_rows ?? 0]));
}

/** Names without the schema that nearly all have in common. */
export function shorten(name: string): string {
  return name.startsWith("public.") ? name.slice(7) : name;
}

/** A query as it would stand by itself, and not as it stood in a file. */
export function dedented(text: string): string {
  const lines = text.replace(/^\s*\n/, "").trimEnd().split("\n");
  const indents = lines.filter((line) => line.trim() !== "").map((line) => line.length - line.trimStart().length);
  const least = Math.min(...indents);
  return lines.map((line) => line.slice(Number.isFinite(least) ? least : 0)).join("\n");
}
