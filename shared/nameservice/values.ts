import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { integer, text } from '../aws/attributes.ts';
import type { Item } from '../aws/dynamodb.ts';

/** A JSON value as the caller sent it. */
export type Json = null | boolean | number | string | Json[] | JsonObject;
export type JsonObject = { [name: string]: Json };

export const flag = (value: boolean) => ({ BOOL: value });
export const map = (value: JsonObject) => ({ M: attributesOf(value) });

export const numberOf = (value: AttributeValue | undefined): number | undefined =>
  value?.N === undefined ? undefined : Number(value.N);

/** The object in a Map attribute; an empty one where there is none. */
export const objectOf = (value: AttributeValue | undefined): JsonObject => jsonObject(value?.M ?? {});

/** An object as readers find it once it is stored: DynamoDB has no -0. */
export const asRead = (value: JsonObject = {}): JsonObject => objectOf(map(value));

/** The strings of a List attribute. */
export const stringsOf = (value: AttributeValue | undefined): string[] => (value?.L ?? []).flatMap(({ S }) => S ?? []);

function attributesOf(value: JsonObject): Item {
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, attribute(member)]));
}

function attribute(value: Json): AttributeValue {
  if (value === null) return { NULL: true };
  if (typeof value === 'boolean') return flag(value);
  if (typeof value === 'number') return integer(value);
  if (typeof value === 'string') return text(value);
  return Array.isArray(value) ? { L: value.map(attribute) } : map(value);
}

function jsonObject(item: Item): JsonObject {
  const members = Object.entries(item).map(([name, value]) => [name, json(value)] as const);
  return Object.fromEntries(members.filter((member): member is [string, Json] => member[1] !== undefined));
}

/** Undefined for what JSON cannot say (sets and binary), which other clients leave out as well. */
function json(value: AttributeValue): Json | undefined {
  if (value.NULL) return null;
  if (value.BOOL !== undefined) return value.BOOL;
  if (value.N !== undefined) return Number(value.N);
  if (value.S !== undefined) return value.S;
  if (value.L) return value.L.map(json).filter((member) => member !== undefined);
  return value.M && jsonObject(value.M);
}
