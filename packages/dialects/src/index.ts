export { applySampling } from "./apply-sampling.js";
export { createCompleteTurn } from "./complete-turn.js";
export { countCharacters } from "./count-characters.js";
export type {
  CompleteTurn,
  Dialect,
  DialectError,
  DialectResponse,
  DialectRoute,
  ParsedRequest,
  StreamWriter,
  WriterOptions,
} from "./dialect.js";
export { openAiChat } from "./openai-chat/openai-chat.js";
export { writeOpenAiUsage } from "./openai-chat/write-usage.js";
