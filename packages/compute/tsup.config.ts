import { library } from "@gimbal-rl/build";
import type { Options } from "tsup";

const config: Options = library({ entry: ["src/index.ts", "src/test/index.ts"] });
export default config;
