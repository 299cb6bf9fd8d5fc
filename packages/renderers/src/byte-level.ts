/**
 * The byte alphabet of byte-level BPE (GPT-2): each of the 256 bytes is written as one printable character.
 */

const characterToByte: ReadonlyMap<number, number> = buildAlphabet();

function buildAlphabet(): Map<number, number> {
  const alphabet = new Map<number, number>();
  let extra = 0;
  for (let byte = 0; byte < 256; byte += 1) {
    const printable =
      (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    alphabet.set(printable ? byte : 256 + extra, byte);
    if (!printable) extra += 1;
  }
  return alphabet;
}

/** The bytes a vocabulary string stands for; undefined when it is not written in the byte alphabet. */
export function byteLevelBytes(token: string): Uint8Array | undefined {
  const bytes = new Uint8Array(token.length);
  for (let i = 0; i < token.length; i += 1) {
    const byte = characterToByte.get(token.charCodeAt(i));
    if (byte === undefined) return undefined;
    bytes[i] = byte;
  }
  return bytes;
}
