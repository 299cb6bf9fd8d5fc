/**
 * Decoding over key/value caches: the same layers as training, without anything kept.
 *
 * Law: a row's logits depend on its path alone, never on what else is in the batch.
 */
import { GimbalError } from "@gimbal-rl/core";
import type { IntTensor, Tensor } from "../backend.js";
import type { DecodablePolicy } from "../policy.js";
import { selectPlanRows } from "./attention-plan.js";
import {
  forwardLayer,
  giveActivations,
  type KeyRows,
  type LayerContext,
  type QueryRows,
} from "./layer.js";
import type { ModelParameters } from "./parameters.js";
import type { RopeTable } from "./rope-table.js";
import { expectTokenIds } from "./trie-pass.js";

type DecodeInput = Parameters<DecodablePolicy["decode"]>[0];

function expectInput({ tokenIds, positions, slots, caches }: DecodeInput, layers: number): void {
  if (
    positions.length !== tokenIds.length ||
    slots.length !== tokenIds.length ||
    caches.length !== layers
  ) {
    throw new GimbalError(
      "shape-mismatch",
      `Decode got ${tokenIds.length} ids, ${positions.length} positions, ${slots.length} slots and ${caches.length} caches; expected equal counts and ${layers} caches.`,
      { boundary: "compute" },
    );
  }
  for (const slot of slots) {
    if (slot < 0 || slot >= caches[0].slots)
      throw new GimbalError("shape-mismatch", `Slot ${slot} is outside ${caches[0].slots} slots.`);
  }
}

function isAllRows(rows: Int32Array, total: number): boolean {
  return rows.length === total && rows.every((row, i) => row === i);
}

/** Runs rows through the model; see `DecodablePolicy.decode`. */
export function runDecode(
  context: LayerContext,
  parameters: ModelParameters,
  rope: RopeTable,
  input: DecodeInput,
): Tensor {
  const { backend, workspace, config } = context;
  const { tokenIds, logitRows, plan } = input;
  expectInput(input, config.layers);
  expectTokenIds(tokenIds, config);
  const rows = tokenIds.length;
  const cosSin = rope.covering(input.positions);
  const owned: IntTensor[] = [];
  const ints = (values: Int32Array): IntTensor => {
    const tensor = backend.allocateInts(values);
    owned.push(tensor);
    return tensor;
  };
  const ids = ints(tokenIds);
  const positions = ints(input.positions);
  const keyRows: KeyRows = { count: rows, positions, slots: ints(input.slots), cosSin };
  const all: QueryRows = { count: rows, indices: null, positions, plan };
  let wanted = all;
  if (!isAllRows(logitRows, rows)) {
    // With no logits wanted, one row keeps the last layer's shapes non-empty; its keys and values are what counts.
    const chosen = logitRows.length > 0 ? logitRows : Int32Array.of(0);
    wanted = {
      count: chosen.length,
      plan: selectPlanRows(plan, chosen, rows),
      indices: ints(chosen),
      positions: ints(chosen.map((row) => input.positions[row])),
    };
  }
  let x = workspace.take(rows * config.width);
  backend.embed(x, parameters.embedding.weight, ids, config.width);
  parameters.layers.forEach((layer, i) => {
    const query = i === config.layers - 1 ? wanted : all;
    const { out, activations } = forwardLayer(context, layer, x, input.caches[i], keyRows, query);
    giveActivations(workspace, activations);
    workspace.give(x);
    x = out;
  });
  const logits = backend.allocate(logitRows.length * config.vocabularySize);
  if (logitRows.length > 0) {
    const inverse = workspace.take(wanted.count);
    const final = workspace.take(x.length);
    const { weight } = parameters.finalNorm;
    backend.rmsNorm(final, inverse, x, weight, config.width, config.normEpsilon);
    backend.linear(logits, final, parameters.head.weight, config.vocabularySize, config.width);
    workspace.give(inverse, final);
  }
  workspace.give(x);
  for (const tensor of owned) backend.free(tensor);
  return logits;
}
