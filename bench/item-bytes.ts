import type { AttributeValue } from '@aws-sdk/client-dynamodb';

type Item = Record<string, AttributeValue>;

const bytes = (text: string): number => Buffer.byteLength(text);
const sum = (sizes: number[]): number => sizes.reduce((left, right) => left + right, 0);

/** The size of an item as the DynamoDB documentation counts it. */
export const itemBytes = (item: Item): number =>
  sum(Object.entries(item).map(([name, value]) => bytes(name) + valueBytes(value)));

function valueBytes({ S, N, B, SS, NS, L, M }: AttributeValue): number {
  if (S !== undefined) return bytes(S);
  if (N !== undefined) return numberBytes(N);
  if (B !== undefined) return Buffer.from(String(B), 'base64').length; // on the wire it is base64
  if (SS) return sum(SS.map(bytes));
  if (NS) return sum(NS.map(numberBytes));
  if (L) return 3 + sum(L.map((value) => 1 + valueBytes(value)));
  if (M) return 3 + sum(Object.entries(M).map(([name, value]) => 1 + bytes(name) + valueBytes(value)));
  return 1;
}

/** One byte for two significant digits, one more, and one for a minus sign. */
const numberBytes = (number: string): number =>
  Math.ceil(number.replace(/[-.]/g, '').replace(/^0+|0+$/g, '').length / 2) + 1 + (number.startsWith('-') ? 1 : 0);
