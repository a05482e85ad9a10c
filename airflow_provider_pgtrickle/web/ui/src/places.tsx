// Where the reader is: the connection, the view and the stream table stand in the address, so that it can be sent on.
import { createContext, useContext } from "react";
import type { ReactNode } from "react";
import { Link } from "react-router-dom";

export const ConnectionContext = createContext("");

export function searchOf(connId: string, more: Record<string, string> = {}): string {
  return `?${new URLSearchParams({ conn_id: connId, ...more })}`;
}

export function TableLink({ quoted, children }: { quoted: string; children: ReactNode }): ReactNode {
  const connId = useContext(ConnectionContext);
  return <Link to={{ search: searchOf(connId, { stream_table: quoted }) }}>{children}</Link>;
}
