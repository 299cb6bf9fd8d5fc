import type { UserWorkspaceConfig } from "vitest/config";

export function project(test?: UserWorkspaceConfig["test"]): UserWorkspaceConfig;
