import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { publishInput } from '../../shared/nameservice/inputs.ts';
import type { PointerStyle } from '../../shared/nameservice/pointers.ts';
import { nameserviceWorld } from '../support/worlds/nameservice.ts';

/**
 * Each golden file was written by hand from the table's published format: calls, and the items that they leave, sorted by
 * `sk`. `call 2` in `updated_at_ms` stands for the moment of the second call.
 */
interface Golden {
  calls: { op: string; alias: string }[];
  pointerStyle?: PointerStyle;
  items: Record<string, object>[];
}

const folder = new URL('golden/', import.meta.url);
const files = readdirSync(folder).sort();
const golden = (file: string): Golden => JSON.parse(readFileSync(new URL(file, folder), 'utf8'));

/** A revision is a UUID, which no golden file can name. */
const withAnyRevision = (item: object) => ('index_revision' in item ? { ...item, index_revision: { S: 'any' } } : item);

const FIRST_CALL_AT = 1_767_225_601_000;
const timeOf = (call: number) => FIRST_CALL_AT + (call - 1) * 1000;

describe('the items in the table', () => {
  it.each(files)('the items in the table are those of the golden file: %s', async (file) => {
    const { calls, pointerStyle = 'address', items } = golden(file);
    const { publish, clock, rawItems } = await nameserviceWorld({ pointerStyle });
    for (const [index, call] of calls.entries()) {
      clock.set(timeOf(index + 1));
      await publish(call);
    }
    const { alias } = publishInput().parse(calls[0]);
    const text = JSON.stringify(items).replace(/"call (\d+)"/g, (_, call) => `"${timeOf(Number(call))}"`);
    const stored = await rawItems(`${alias.name}:${alias.branch}`);
    expect(stored.map(withAnyRevision)).toEqual(JSON.parse(text));
  });

  it('the items in the table have a golden file for every operation', () => {
    const covered = new Set(files.map((file) => golden(file).calls.at(-1)?.op));
    expect([...covered].sort()).toEqual(
      publishInput()
        .def.options.flatMap((option) => option.def.shape.op.def.values)
        .sort(),
    );
  });
});
