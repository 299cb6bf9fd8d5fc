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
