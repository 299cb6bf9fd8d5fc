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
