export type {
  OutputParser,
  ParsedTurn,
  RenderedPrompt,
  Renderer,
  RenderSpan,
  Tape,
  TapePlan,
  Tokenizer,
} from "./renderer.js";
