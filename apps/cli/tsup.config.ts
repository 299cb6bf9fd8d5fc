import { library } from "@gimbal-rl/build";
import type { Options } from "tsup";

// `main.ts` starts with a hashbang, which the bundler keeps on that entry alone and makes executable.
const config: Options = library({ entry: ["src/index.ts", "src/main.ts"] });
export default config;
