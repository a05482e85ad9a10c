// Airflow imports this bundle, and takes the component that it finds under the name of the plugin's app.
import { Page } from "./page";

(globalThis as unknown as Record<string, unknown>)["Stream tables"] = Page;
