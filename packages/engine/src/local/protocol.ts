/**
 * What the engine's two halves say to each other: the caller's side and the side that owns the model.
 *
 * Law: messages are plain data in order. Everything the sampler did in one step travels in one `events` message.
 */
import {
  type ErrorBoundary,
  type ErrorCode,
  type GenerateRequest,
  GimbalError,
  type PolicyVersion,
} from "@gimbal-rl/core";
import type { SamplerStats } from "./stats.js";

/** Which backend runs the model. */
export type LocalBackendId = "wasm" | "reference";

/** How the side that owns the model is set up. */
export interface HostOptions {
  readonly modelDir: string;
  readonly backend: LocalBackendId;
  readonly threads: number;
  readonly slots: number | null;
  readonly maxRunning: number;
  readonly prefillRows: number;
  readonly policyVersion: PolicyVersion;
}

/** A {@link GimbalError} as plain data. */
export interface ErrorData {
  readonly code: ErrorCode;
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
  readonly boundary: ErrorBoundary | null;
}

/** To the side that owns the model. */
export type HostRequest =
  | { readonly type: "start"; readonly options: HostOptions }
  | { readonly type: "generate"; readonly call: number; readonly request: GenerateRequest }
  | { readonly type: "abort"; readonly call: number }
  | {
      readonly type: "load-weights";
      readonly task: number;
      readonly modelDir: string;
      readonly policyVersion: PolicyVersion;
    }
  | { readonly type: "stats"; readonly task: number }
  | { readonly type: "close"; readonly task: number };

/** What happened to one call in one step. */
export type CallUpdate =
  | {
      readonly type: "tokens";
      readonly call: number;
      readonly ids: number[];
      readonly logprobs: number[];
      readonly policyVersion: PolicyVersion;
    }
  | {
      readonly type: "end";
      readonly call: number;
      readonly reason: "stop" | "length" | "aborted";
      readonly cachedTokens: number;
    }
  | { readonly type: "failed"; readonly call: number; readonly error: ErrorData };

/** Facts about the model and backend that the caller's side shows. */
export interface HostInfo {
  readonly contextLength: number;
  readonly vocabularySize: number;
  readonly slots: number;
  readonly backendId: string;
  readonly backendVariant: string;
  readonly threads: number;
}

/** From the side that owns the model. */
export type HostReply =
  | { readonly type: "started"; readonly info: HostInfo }
  | { readonly type: "start-failed"; readonly error: ErrorData }
  | { readonly type: "events"; readonly updates: readonly CallUpdate[] }
  | {
      readonly type: "weights-loaded";
      readonly task: number;
      readonly policyVersion: PolicyVersion;
    }
  | { readonly type: "stats"; readonly task: number; readonly stats: SamplerStats }
  | { readonly type: "closed"; readonly task: number }
  | { readonly type: "task-failed"; readonly task: number; readonly error: ErrorData };

/** An error as data that survives a message channel. Details that do not are left out. */
export function errorToData(error: GimbalError): ErrorData {
  return {
    code: error.code,
    message: error.message,
    details: plainDetails(error.details),
    boundary: error.boundary ?? null,
  };
}

/** The error that {@link errorToData} described. */
export function dataToError({ code, message, details, boundary }: ErrorData): GimbalError {
  return new GimbalError(code, message, { details, ...(boundary === null ? {} : { boundary }) });
}

function plainDetails(details: Readonly<Record<string, unknown>>): Record<string, unknown> {
  try {
    return structuredClone(details) as Record<string, unknown>;
  } catch {
    return {};
  }
}
