// The JSON API. Paths are below Airflow's base address, wherever that is; the session's cookie goes along by itself.
import { useCallback, useEffect, useRef, useState } from "react";

export interface Connection {
  conn_id: string;
  conn_type: string;
  stream_tables: number | null;
  failed: boolean;
}

export interface Table {
  name: string;
  quoted: string;
  status: string;
  refresh_mode: string;
  schedule: string | null;
  target_seconds: number | null;
  is_populated: boolean;
  is_live: boolean;
  tier: string;
  /** What tier `auto` means now. */
  effective_tier: string;
  placement: string | null;
  data_timestamp: string | null;
  staleness_seconds: number | null;
  last_refresh_at: string | null;
  consecutive_errors: number;
  last_error: string | null;
  is_gated: boolean;
  gated_reason: string | null;
  needs_reinit: boolean;
  reinit_reason: string | null;
  differentiable: boolean;
  refusal: string | null;
  last_action: string | null;
  last_status: string | null;
  last_duration_ms: number | null;
  last_reason: string | null;
  is_running: boolean;
}

export interface Read {
  reader: string;
  source: string;
  source_type: string;
  source_pgt_id: number | null;
  cdc_mode: string;
}

export interface Owner {
  bundle: string;
  file: string;
  graph: string;
  removed_at: string | null;
}

export interface Graph {
  installed: boolean;
  tables: Table[];
  reads: Read[];
  units: string[][];
  owners: Record<string, Owner>;
  /** The DAG that a table had, where this Airflow has it no more. */
  gone: Record<string, string>;
  may_edit: boolean;
}

export interface Pending {
  stream_table: string;
  source_table: string;
  pending_rows: number | null;
  buffer_bytes: number | null;
}

/** What stood in a source's buffer over the last day, as it was sampled. */
export interface Growth {
  source: string;
  since: string;
  samples: number;
  low_before: number | null;
  low_since: number | null;
  rows: number[];
  bytes: number;
  grows: boolean;
}

export interface Cost {
  name: string;
  refreshes: number;
  total_ms: number;
  longest_ms: number | null;
  rows_read: number;
  failures: number;
  failure: string | null;
  failed_at: string | null;
  avoidable: number;
  avoidable_ms: number;
  avoidable_reason: string | null;
  differential_ms: number | null;
  usual_changes: number | null;
}

export interface Refresh {
  refresh_id: number;
  start_time: string;
  end_time: string | null;
  action: string | null;
  status: string;
  fallback_reason: string | null;
  initiated_by: string | null;
  unit: string[];
  rows_inserted: number;
  rows_updated: number;
  rows_deleted: number;
  source_changes: number;
  rows_read: number;
  reads: number;
  spark_jobs: number;
  duration_ms: number | null;
  phases: Record<string, number> | null;
  /** Where it was computed, and what each way that competed was predicted to take. */
  way: string | null;
  candidates: Record<string, number> | null;
  actual_ms: number | null;
  data_timestamp: string | null;
  error_message: string | null;
  has_plan: boolean;
}

export interface Source {
  name: string;
  source_type: string;
  cdc_mode: string;
  columns_used: string[] | null;
  is_stream_table: boolean;
  quoted: string | null;
  estimated_rows: number | null;
}

export interface Writer {
  source: string;
  statements: number;
  mean_rows: number;
  mean_ms: number;
  longest_ms: number;
  last_at: string;
}

export interface Dag {
  dag_id: string;
  is_paused: boolean;
  may_trigger: boolean;
}

export interface Detail extends Omit<Table, "last_action" | "last_status" | "last_duration_ms" | "last_reason"> {
  description: string | null;
  original_query: string;
  partition_by: string | null;
  unit: string | null;
  append_only: boolean;
  float_sums: string | null;
  timezone: string | null;
  frozen_before: string | null;
  frozen_breach: string | null;
  append_only_ended: string | null;
  verify_every: string | null;
  verified: string | null;
  verified_at: string | null;
  requested_cdc_mode: string | null;
  declared_by: string | null;
  created_at: string;
  bytes: number | null;
  estimated_rows: number | null;
  sources: Source[];
  readers: { name: string; quoted: string }[];
  history: Refresh[];
  writers: Writer[];
  owner: Owner | null;
  dag: Dag | null;
  gone: string | null;
  /** Addresses of Airflow's assets: of the table itself, and of what it reads. */
  assets: Record<string, string>;
  runs: Record<string, string>;
  may_edit: boolean;
}

export interface Planned {
  kind: string;
  relation: string | null;
  cost: number;
  rows: number;
  inputs: Planned[];
}

export interface Explanation {
  differentiable: boolean;
  reason: string | null;
  sink: string;
  because: string | null;
  identity: string[];
  keyed: boolean;
  hidden: string[];
  operator_tree: string;
  statements: { title: string; sql: string }[];
  missing_indexes: string[];
  writers: string[];
  ways: string[];
  parts: (Explanation & { name: string; query: string })[];
  planned?: Planned | null;
}

export function address(path: string): string {
  return new URL(path, document.baseURI).href;
}

export function ofConnection(connId: string, route: string, query: Record<string, string> = {}): string {
  const asked = new URLSearchParams(query).toString();
  return `pgtrickle/api/connections/${encodeURIComponent(connId)}/${route}${asked && `?${asked}`}`;
}

async function answered<T>(response: Response): Promise<T> {
  if (response.ok) return (await response.json()) as T;
  const failure = (await response.json().catch(() => ({}))) as { detail?: unknown };
  if (response.status === 401) throw new Error("You are logged out of Airflow. Log in again.");
  if (typeof failure.detail === "string" && failure.detail !== "Forbidden") throw new Error(failure.detail);
  if (response.status === 403) throw new Error("You may not do this with this connection. Ask whoever runs Airflow.");
  throw new Error(`Airflow's API server answered ${response.status}. Its log says why.`);
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return answered<T>(await fetch(address(path), { credentials: "same-origin", signal: signal ?? null }));
}

export async function post<T>(path: string, body: unknown): Promise<T> {
  return answered<T>(
    await fetch(address(path), {
      method: "POST",
      credentials: "same-origin",
      // No other site's form or script can send this header, so the request is ours.
      headers: { "Content-Type": "application/json", "X-Pgtrickle-Page": "1" },
      body: JSON.stringify(body),
    }),
  );
}

export interface Polled<T> {
  data: T | null;
  error: string | null;
  /** When the data came, by this machine's clock. */
  at: number | null;
  again: () => void;
}

/** What a path answers, asked again every few seconds while somebody looks. The last data stay where one fails. */
export function usePolled<T>(path: string | null, seconds: number): Polled<T> {
  const [state, setState] = useState<{ path: string | null; data: T | null; error: string | null; at: number | null }>({
    path: null,
    data: null,
    error: null,
    at: null,
  });
  const ask = useRef<() => void>(() => undefined);

  useEffect(() => {
    if (path === null) return undefined;
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let asking = false;
    const once = async () => {
      if (asking) return;
      clearTimeout(timer);
      asking = true;
      try {
        const data = await get<T>(path, stop.signal);
        if (!stop.signal.aborted) setState({ path, data, error: null, at: Date.now() });
      } catch (error) {
        if (!stop.signal.aborted) {
          const said = error instanceof TypeError ? "Airflow's API server can't be reached." : (error as Error).message;
          setState((was) => ({ path, data: was.path === path ? was.data : null, error: said, at: was.at }));
        }
      }
      asking = false;
      if (!stop.signal.aborted && document.visibilityState === "visible") timer = setTimeout(once, seconds * 1000);
    };
    const seen = () => {
      if (document.visibilityState === "visible") void once();
    };
    ask.current = () => void once();
    document.addEventListener("visibilitychange", seen);
    void once();
    return () => {
      stop.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [path, seconds]);

  const again = useCallback(() => ask.current(), []);
  const mine = state.path === path;
  return { data: mine ? state.data : null, error: mine ? state.error : null, at: mine ? state.at : null, again };
}
