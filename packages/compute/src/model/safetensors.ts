/**
 * The safetensors format, on bytes in memory: an 8-byte header length, a JSON header, then the data.
 *
 * Law: a header is accepted only when its tensors cover the data exactly, without gaps or overlaps; so a truncated
 * or corrupt file is refused before anything is loaded.
 */
import { modelInvalid, parseJsonObject } from "./config.js";
import { bytesPerNumber, decodeFloats, encodeFloats, type FloatFormat } from "./number-formats.js";

/** One tensor of a file. */
export interface TensorEntry {
  readonly shape: readonly number[];
  readonly format: FloatFormat;
  /** Byte range within the data part. */
  readonly start: number;
  readonly end: number;
}

/** A parsed header. */
export interface SafetensorsHeader {
  readonly entries: ReadonlyMap<string, TensorEntry>;
  readonly metadata: Readonly<Record<string, string>>;
}

/** Named tensors that can be read one at a time: a file, several shards, or bytes in memory. */
export interface TensorSource {
  /** Names the source in errors. */
  readonly label: string;
  readonly shapes: ReadonlyMap<string, readonly number[]>;
  readonly metadata: Readonly<Record<string, string>>;
  /** The values as f32. @throws {GimbalError} `model-invalid`, `not-found`. */
  read(name: string): Promise<Float32Array>;
  close(): Promise<void>;
}

/** A tensor to write. */
export interface TensorToWrite {
  readonly name: string;
  readonly shape: readonly number[];
  read(): Promise<Float32Array>;
}

const maximumHeaderBytes = 100_000_000; // The limit of the reference implementation.
const advice = "The file is truncated or corrupt; download or copy it again.";

function isFloatFormat(value: unknown): value is FloatFormat {
  return value === "F32" || value === "BF16" || value === "F16";
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function parseEntry(name: string, value: unknown, label: string): TensorEntry {
  const { dtype, shape, data_offsets: offsets } = (value ?? {}) as Record<string, unknown>;
  if (typeof dtype === "string" && !isFloatFormat(dtype)) {
    throw modelInvalid(
      label,
      `tensor ${name} has dtype ${dtype}; supported are F32, BF16 and F16. Convert the weights.`,
    );
  }
  if (
    !isFloatFormat(dtype) ||
    !Array.isArray(shape) ||
    !shape.every(isCount) ||
    !Array.isArray(offsets) ||
    offsets.length !== 2 ||
    !offsets.every(isCount)
  ) {
    throw modelInvalid(label, `tensor ${name} has a malformed header entry. ${advice}`);
  }
  const [start, end] = offsets as [number, number];
  const numbers = (shape as number[]).reduce((product, size) => product * size, 1);
  if (end - start !== numbers * bytesPerNumber[dtype]) {
    throw modelInvalid(
      label,
      `tensor ${name} holds ${end - start} bytes, expected ${numbers * bytesPerNumber[dtype]} for its shape. ${advice}`,
    );
  }
  return { shape: shape as number[], format: dtype, start, end };
}

/**
 * Reads the header length from the first 8 bytes.
 * @throws {GimbalError} `model-invalid` when it cannot fit in the file.
 */
export function parseHeaderLength(prefix: Uint8Array, fileBytes: number, label: string): number {
  if (prefix.byteLength < 8 || fileBytes < 8)
    throw modelInvalid(label, `found ${fileBytes} bytes, expected a safetensors file. ${advice}`);
  const view = new DataView(prefix.buffer, prefix.byteOffset, 8);
  const length = Number(view.getBigUint64(0, true));
  if (length > maximumHeaderBytes || length + 8 > fileBytes) {
    throw modelInvalid(
      label,
      `found a header of ${length} bytes in a file of ${fileBytes} bytes. ${advice}`,
    );
  }
  return length;
}

/**
 * Parses a header and checks that it covers the data part exactly.
 * @param dataBytes - size of the data part.
 * @throws {GimbalError} `model-invalid`.
 */
export function parseSafetensorsHeader(
  header: Uint8Array,
  dataBytes: number,
  label: string,
): SafetensorsHeader {
  const json = parseJsonObject(new TextDecoder().decode(header), label);
  const entries = new Map<string, TensorEntry>();
  const metadata: Record<string, string> = {};
  for (const [name, value] of Object.entries(json)) {
    if (name === "__metadata__") {
      for (const [key, text] of Object.entries((value ?? {}) as Record<string, unknown>))
        metadata[key] = String(text);
    } else {
      entries.set(name, parseEntry(name, value, label));
    }
  }
  let covered = 0;
  for (const [name, entry] of [...entries].sort((a, b) => a[1].start - b[1].start)) {
    if (entry.start !== covered)
      throw modelInvalid(label, `tensor ${name} leaves a gap or overlaps another. ${advice}`);
    covered = entry.end;
  }
  if (covered !== dataBytes) {
    throw modelInvalid(label, `found ${dataBytes} bytes of data, expected ${covered}. ${advice}`);
  }
  return { entries, metadata };
}

/** Builds a TensorSource from a header and a way to fetch byte ranges of the data part. */
export function createTensorSource(
  header: SafetensorsHeader,
  label: string,
  fetchBytes: (start: number, end: number) => Promise<Uint8Array>,
  close: () => Promise<void>,
): TensorSource {
  return {
    label,
    shapes: new Map([...header.entries].map(([name, entry]) => [name, entry.shape])),
    metadata: header.metadata,
    async read(name) {
      const entry = header.entries.get(name);
      if (entry === undefined) throw modelInvalid(label, `no tensor named ${name}.`);
      return decodeFloats(await fetchBytes(entry.start, entry.end), entry.format);
    },
    close,
  };
}

/**
 * Opens a safetensors file that is already in memory.
 * @throws {GimbalError} `model-invalid` when it is truncated, corrupt or of an unsupported dtype.
 */
export function readSafetensors(bytes: Uint8Array, label = "model.safetensors"): TensorSource {
  const length = parseHeaderLength(bytes.subarray(0, 8), bytes.byteLength, label);
  const data = bytes.subarray(8 + length);
  const header = parseSafetensorsHeader(bytes.subarray(8, 8 + length), data.byteLength, label);
  return createTensorSource(
    header,
    label,
    (start, end) => Promise.resolve(data.subarray(start, end)),
    () => Promise.resolve(),
  );
}

/** The bytes of a safetensors file, piece by piece: the header, then one piece a tensor. */
export async function* encodeSafetensors(
  tensors: readonly TensorToWrite[],
  format: "F32" | "BF16",
  metadata: Readonly<Record<string, string>>,
): AsyncGenerator<Uint8Array, void, undefined> {
  const json: Record<string, unknown> = { __metadata__: { format: "pt", ...metadata } };
  let offset = 0;
  for (const { name, shape } of tensors) {
    const size = shape.reduce((product, n) => product * n, 1) * bytesPerNumber[format];
    json[name] = { dtype: format, shape, data_offsets: [offset, offset + size] };
    offset += size;
  }
  const text = JSON.stringify(json);
  // Padded with spaces so that the data is aligned to 8 bytes, as the reference writer does.
  const header = new TextEncoder().encode(text.padEnd(Math.ceil(text.length / 8) * 8, " "));
  const prefix = new Uint8Array(8);
  new DataView(prefix.buffer).setBigUint64(0, BigInt(header.byteLength), true);
  yield prefix;
  yield header;
  for (const tensor of tensors) yield encodeFloats(await tensor.read(), format);
}
