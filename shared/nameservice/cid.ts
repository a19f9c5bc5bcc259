const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';

/** The longest digest that Fluree's processes can hold. They crash on a longer one. */
const MAX_DIGEST_BYTES = 64;

/**
 * Whether a text is a content identifier: a CIDv1 in base32 (https://github.com/multiformats/cid). It has the letter
 * `b` and then the version 1, the codec, the hash function, the length of the digest and the digest.
 */
export function isCid(text: string): boolean {
  if (!/^b[a-z2-7]+$/.test(text)) return false;
  const bytes = decodeBase32(text.slice(1));
  if (!bytes) return false;
  const version = varint(bytes, 0);
  const codec = version && varint(bytes, version.end);
  const hash = codec && varint(bytes, codec.end);
  const length = hash && varint(bytes, hash.end);
  if (version?.value !== 1 || !length) return false;
  const isWhole = length.end + length.value === bytes.length;
  return isWhole && length.value > 0 && length.value <= MAX_DIGEST_BYTES;
}

/**
 * Decodes base32 without padding (RFC 4648), five bits a letter.
 * @returns undefined if the bits that are left over are not zero
 */
function decodeBase32(letters: string): number[] | undefined {
  const bytes: number[] = [];
  let buffer = 0;
  let bits = 0;
  for (const letter of letters) {
    buffer = (buffer << 5) | BASE32.indexOf(letter);
    bits += 5;
    if (bits >= 8) {
      bits -= 8;
      bytes.push(buffer >> bits);
      buffer &= (1 << bits) - 1;
    }
  }
  return bits < 5 && buffer === 0 ? bytes : undefined;
}

/**
 * Reads a number in unsigned LEB128.
 * @returns undefined if it has more than four bytes, or more than the number needs
 */
function varint(bytes: number[], start: number): { value: number; end: number } | undefined {
  let value = 0;
  for (let at = start; at < start + 4; at++) {
    const byte = bytes[at];
    if (byte === undefined) return undefined;
    value |= (byte & 0x7f) << (7 * (at - start));
    // With a last byte of zero, the number could be a byte shorter.
    if (byte < 0x80) return byte === 0 && at > start ? undefined : { value, end: at + 1 };
  }
  return undefined;
}
