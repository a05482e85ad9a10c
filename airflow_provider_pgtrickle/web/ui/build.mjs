// Writes ../page.js. React, its router and its JSX runtime are Airflow's own, which it puts on `globalThis` for plugins.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const FROM_AIRFLOW = {
  react: "React",
  "react/jsx-runtime": "ReactJSXRuntime",
  "react-router-dom": "ReactRouterDOM",
};

const fromAirflow = {
  name: "from-airflow",
  setup(builder) {
    builder.onResolve({ filter: /^react(\/jsx-runtime|-router-dom)?$/ }, ({ path }) => ({ path, namespace: "airflow" }));
    builder.onLoad({ filter: /.*/, namespace: "airflow" }, ({ path }) => ({
      contents: `module.exports = globalThis.${FROM_AIRFLOW[path]};`,
    }));
  },
};

// What the bundle is made of. tests/unit/test_page_bundle.py computes the same, and finds a bundle that is stale.
const parts = ["build.mjs", "package-lock.json", "package.json", "tsconfig.json"];
parts.push(...readdirSync(join(here, "src")).map((name) => `src/${name}`));
const digest = createHash("sha256");
for (const part of parts.sort()) {
  digest.update(`${part}\0`).update(readFileSync(join(here, part))).update("\0");
}

const result = await build({
  absWorkingDir: here,
  entryPoints: ["src/main.tsx"],
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: true,
  jsx: "automatic",
  loader: { ".css": "text" },
  legalComments: "none",
  plugins: [fromAirflow],
  write: false,
});
const banner =
  `// Written by web/ui/build.mjs from source ${digest.digest("hex")}\n` +
  "// With @dagrejs/dagre and @dagrejs/graphlib, (c) Chris Pettitt and contributors, MIT license.\n";
writeFileSync(join(here, "..", "page.js"), banner + result.outputFiles[0].text);
