// What the bundle uses of Airflow's own libraries, and of the build.

declare module "react-router-dom" {
  import type { AnchorHTMLAttributes, ReactNode } from "react";

  interface LinkProps extends Omit<AnchorHTMLAttributes<HTMLAnchorElement>, "href"> {
    to: string | { search: string };
    children?: ReactNode;
  }
  export function Link(props: LinkProps): ReactNode;
  export function useSearchParams(): [
    URLSearchParams,
    (next: URLSearchParams | Record<string, string>, options?: { replace?: boolean }) => void,
  ];
}

declare module "*.css" {
  const text: string;
  export default text;
}
