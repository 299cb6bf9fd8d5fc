import { project } from "@gimbal-rl/build/vitest";
import type { UserWorkspaceConfig } from "vitest/config";

const config: UserWorkspaceConfig = project({
  testTimeout: 60_000,
  hookTimeout: 60_000,
});
export default config;
