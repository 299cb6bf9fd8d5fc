export { createGateway, type Gateway } from "./gateway.js";
export { defaultLimits, type GatewayLimits, type GatewayOptions } from "./options.js";
export type {
  LimitHit,
  SessionGrant,
  SessionInfo,
  SessionLimit,
  SessionSpec,
} from "./session-spec.js";
export {
  defaultVolatileRules,
  type Stabilised,
  stabiliseConversation,
  type VolatileRule,
} from "./volatile-rules.js";
