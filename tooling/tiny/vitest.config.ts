import { project } from "@gimbal-rl/build/vitest";
import type { UserWorkspaceConfig } from "vitest/config";

const config: UserWorkspaceConfig = project();
export default config;
