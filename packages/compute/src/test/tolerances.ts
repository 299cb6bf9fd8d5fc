/**
 * How far a backend may be from the f64 formulas: the one table of tolerances.
 *
 * A difference is measured against the largest magnitude of the expected buffer.
 */
import type { BackendInfo } from "../backend.js";

/** Relative tolerances of f32 buffers. */
export interface Tolerance {
  /** One operation, forward. */
  readonly value: number;
  /** One operation, backward. */
  readonly gradient: number;
  /** A whole model's log-probabilities. */
  readonly modelValue: number;
  /** A whole model's gradients against finite differences of the f64 model. */
  readonly modelGradient: number;
  /** A trie batch's gradients against those of the separate sequences (design.md section 6). */
  readonly trieGradient: number;
}

/** The table: f32 storage, per backend. The reference sums in f64 and only rounds when it stores. */
export const tolerancesF32: Readonly<Record<BackendInfo["id"], Tolerance>> = {
  reference: {
    value: 3e-7,
    gradient: 5e-7,
    modelValue: 2e-6,
    modelGradient: 2e-6,
    trieGradient: 1e-5,
  },
  wasm: {
    value: 3e-6,
    gradient: 1e-5,
    modelValue: 1e-5,
    modelGradient: 2e-5,
    trieGradient: 1e-5,
  },
  webgpu: {
    value: 1e-5,
    gradient: 3e-5,
    modelValue: 3e-5,
    modelGradient: 1e-4,
    trieGradient: 1e-5,
  },
  cuda: {
    value: 1e-5,
    gradient: 3e-5,
    modelValue: 3e-5,
    modelGradient: 1e-4,
    trieGradient: 1e-5,
  },
};
