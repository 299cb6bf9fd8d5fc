export { createFakeClock, type FakeClock, settle, waitUntil } from "./fake-clock.js";
export {
  createScriptedEngine,
  type EngineScript,
  type ScriptContext,
  type ScriptedEngine,
  type ScriptedEngineOptions,
  type ScriptedTurn,
  scriptedLogprobs,
} from "./scripted-engine.js";
export { parseChatChunks, parseSse, type SseItem } from "./sse.js";
export { withTempDir } from "./temp-dir.js";
export {
  createTestModelTexts,
  type TestModelTexts,
  testSpecialTokens,
} from "./test-model.js";
