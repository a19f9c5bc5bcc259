import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { integer, type Json, text } from '../aws/attributes.ts';
import type { Item } from '../aws/dynamodb.ts';

export type JsonObject = { [name: string]: Json };

export const booleanAttribute = (value: boolean) => ({ BOOL: value });
export const mapAttribute = (value: JsonObject) => ({ M: itemOfJson(value) });

export const numberOf = (value: AttributeValue | undefined): number | undefined =>
  value?.N === undefined ? undefined : Number(value.N);

/** The object in a Map attribute, or an empty one. */
export const objectOf = (value: AttributeValue | undefined): JsonObject => jsonObjectOf(value?.M ?? {});

/** An object as it reads after it was stored. It may differ, because DynamoDB turns -0 into 0. */
export const asRead = (value: JsonObject = {}): JsonObject => objectOf(mapAttribute(value));

// JSON.stringify writes the text of a raw value as it is. TypeScript's libraries do not declare JSON.rawJSON yet.
const { rawJSON } = JSON as unknown as { rawJSON(text: string): number };

const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?$/;

/**
 * A number that JSON.stringify writes without rounding. Other clients store whole numbers of 64 bits, which a double
 * would round.
 */
export function exactNumber(text: string): number {
  const rounded = Number(text);
  return JSON_NUMBER.test(text) && digitsOf(String(rounded)) !== digitsOf(text) ? rawJSON(text) : rounded;
}

/** A form of a number in which 1e2, 100 and 100.0 are the same text. */
function digitsOf(text: string): string {
  const [mantissa = '', exponent = '0'] = text
    .toLowerCase()
    .replace(/^-/, '')
    .split(/e(?=[-+\d])/);
  const [whole = '', fraction = ''] = mantissa.split('.');
  const digits = (whole + fraction).replace(/^0+/, '');
  const significant = withoutZerosAtTheEnd(digits);
  if (significant === '') return '0';
  return `${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`;
}

/** Removes zeros at the end in a loop. The expression /0+$/ would take time with the square of the number of zeros. */
function withoutZerosAtTheEnd(digits: string): string {
  let end = digits.length;
  while (digits[end - 1] === '0') end--;
  return digits.slice(0, end);
}

export const stringsOf = (value: AttributeValue | undefined): string[] => (value?.L ?? []).flatMap(({ S }) => S ?? []);

function itemOfJson(value: JsonObject): Item {
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, attribute(member)]));
}

function attribute(value: Json): AttributeValue {
  if (value === null) return { NULL: true };
  if (typeof value === 'boolean') return booleanAttribute(value);
  if (typeof value === 'number') return integer(value);
  if (typeof value === 'string') return text(value);
  return Array.isArray(value) ? { L: value.map(attribute) } : mapAttribute(value);
}

function jsonObjectOf(item: Item): JsonObject {
  const members = Object.entries(item).map(([name, value]) => [name, jsonOf(value)] as const);
  return Object.fromEntries(members.filter((member): member is [string, Json] => member[1] !== undefined));
}

/** @returns undefined for sets and binary values, which JSON does not have */
function jsonOf(value: AttributeValue): Json | undefined {
  if (value.NULL) return null;
  if (value.BOOL !== undefined) return value.BOOL;
  if (value.N !== undefined) return exactNumber(value.N);
  if (value.S !== undefined) return value.S;
  if (value.L) return value.L.map(jsonOf).filter((member) => member !== undefined);
  return value.M && jsonObjectOf(value.M);
}
