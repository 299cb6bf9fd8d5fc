export { carriesSecret } from "./capability-key.js";
export { createGateway, type Gateway } from "./gateway.js";
export { listenOnPort } from "./listen.js";
export { defaultLimits, type GatewayLimits, type GatewayOptions } from "./options.js";
export { type BodyBudget, bodyText, readBody } from "./read-body.js";
export { requestUrl } from "./request-url.js";
export type {
  LimitHit,
  SessionGrant,
  SessionInfo,
  SessionLimit,
  SessionSpec,
} from "./session-spec.js";
export { type StopOptions, untilStopped } from "./until-stopped.js";
export {
  defaultVolatileRules,
  type Stabilised,
  stabiliseConversation,
  type VolatileRule,
} from "./volatile-rules.js";
export { toWireError } from "./wire-error.js";
