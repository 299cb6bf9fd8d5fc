export {
  createLocalEngine,
  type LocalEngine,
  type LocalEngineOptions,
} from "./local/local-engine.js";
export type { HostInfo, LocalBackendId } from "./local/protocol.js";
export type { SamplerStats } from "./local/stats.js";
