/**
 * Cosines and sines of the rotary embedding per position, computed once and grown on demand.
 *
 * Laws: a position's values never depend on the table's size; angles are rounded to f32 as in Transformers; a table that
 * was handed out lives until `free`, because a forward pass may still need it for its backward.
 */
import { GimbalError } from "@gimbal-rl/core";
import type { Backend, Tensor } from "../backend.js";
import type { ModelConfig } from "../policy.js";

/** Angle per position of each pair of a head, shape [E / 2]; with Llama 3's stretching when configured. */
export function rotaryFrequencies(
  config: Pick<ModelConfig, "headWidth" | "ropeTheta" | "ropeScaling">,
): Float32Array {
  const half = config.headWidth / 2;
  const frequencies = new Float32Array(half);
  const scaling = config.ropeScaling;
  for (let i = 0; i < half; i += 1) {
    const frequency = Math.fround(1 / config.ropeTheta ** ((2 * i) / config.headWidth));
    frequencies[i] = frequency;
    if (scaling === undefined) continue;
    // Wavelengths beyond the original context are stretched by `factor`, short ones kept, those between blended.
    const turns = (scaling.originalMaxPositions * frequency) / (2 * Math.PI);
    const span = scaling.highFrequencyFactor - scaling.lowFrequencyFactor;
    const blend = Math.min(1, Math.max(0, (turns - scaling.lowFrequencyFactor) / span));
    frequencies[i] = (1 - blend) * (frequency / scaling.factor) + blend * frequency;
  }
  return frequencies;
}

/** cosSin[positions, E]: cosines in the first half of a row, sines in the second. */
function rotaryTable(
  config: Pick<ModelConfig, "headWidth" | "ropeTheta" | "ropeScaling">,
  positions: number,
): Float32Array {
  const half = config.headWidth / 2;
  const frequencies = rotaryFrequencies(config);
  const table = new Float32Array(positions * config.headWidth);
  for (let p = 0; p < positions; p += 1) {
    for (let i = 0; i < half; i += 1) {
      const angle = Math.fround(p * frequencies[i]);
      table[p * config.headWidth + i] = Math.cos(angle);
      table[p * config.headWidth + half + i] = Math.sin(angle);
    }
  }
  return table;
}

/** The table on a backend. */
export class RopeTable {
  readonly #config: ModelConfig;
  readonly #backend: Backend;
  /** The newest last. Sizes at least double, so the older ones together are smaller than it. */
  readonly #tables: Tensor[] = [];

  constructor(config: ModelConfig, backend: Backend) {
    this.#config = config;
    this.#backend = backend;
  }

  /**
   * A table that covers all the positions.
   * @throws {GimbalError} `context-length-exceeded`, `shape-mismatch`.
   */
  covering(positions: Int32Array): Tensor {
    let last = 0;
    for (const position of positions) {
      if (position < 0)
        throw new GimbalError("shape-mismatch", `Found position ${position}; expected 0 or more.`);
      if (position > last) last = position;
    }
    const { maxPositions, headWidth } = this.#config;
    if (last >= maxPositions) {
      throw new GimbalError(
        "context-length-exceeded",
        `Found position ${last}; the model has ${maxPositions} positions. Shorten the context.`,
        { boundary: "compute" },
      );
    }
    const newest = this.#tables.at(-1);
    if (newest !== undefined && newest.length > last * headWidth) return newest;
    const size = Math.min(maxPositions, Math.max(1024, 2 ** Math.ceil(Math.log2(last + 1))));
    const table = this.#backend.allocate(size * headWidth);
    this.#tables.push(table);
    this.#backend.write(table, rotaryTable(this.#config, size));
    return table;
  }

  /** Frees every table; no pass may be open. */
  free(): void {
    for (const table of this.#tables.splice(0)) this.#backend.free(table);
  }
}
