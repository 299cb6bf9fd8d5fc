export { loadRenderer, type RendererSource } from "./chat-renderer.js";
export type {
  DeltaSupport,
  OutputParser,
  ParsedTurn,
  RenderedPrompt,
  Renderer,
  RenderSpan,
  Tape,
  TapePlan,
  Tokenizer,
} from "./renderer.js";
export { createTape, type TapeOptions } from "./tape.js";
export { loadTokenizer } from "./tokenizer.js";
