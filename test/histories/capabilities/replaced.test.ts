import { expect, it } from 'vitest';
import type { HolderEntry } from '../../../shared/locks/record/record.ts';
import { nameOf } from '../../../verification/histories/capabilities/line.model.ts';
import { neverTooManyPermits } from '../../../verification/histories/capabilities/record.model.ts';
import {
  HOLDER_ASKED,
  NO_OLDER,
  replacedRightly,
  SUPERSEDED_RIGHTLY,
} from '../../../verification/histories/capabilities/replaced.model.ts';
import { entry, landedOn, promises } from '../../../verification/histories/handmade.ts';
import type { Entry } from '../../../verification/histories/history.ts';
import { type LockState, NO_LOCK } from '../../../verification/histories/landed.ts';

const KEY = 'w-q0';
const UUID = '00000000-0000-4000-8000-000000000000';

const request = (who: string, replace?: string) => ({
  key: KEY,
  holder: who,
  requestId: who,
  ...(replace && { replace }),
});
const name = (who: string) => nameOf(entry('acquire', request(who), [0]));
const holder = (who: string) => ({ name: name(who), id: UUID, holder: who }) as HolderEntry;
/** A call that leaves the record so. */
const asks = (who: string, ms: number, state: Partial<LockState>, replace = 'waiting') =>
  entry(
    'acquire',
    request(who, replace),
    [ms - 5],
    undefined,
    {},
    {
      actor: who,
      landed: landedOn(KEY, { what: 'lock', ms, state: { ...NO_LOCK, ...state } }),
    },
  );
const joins = (who: string, ms: number, entries: HolderEntry[] = [], replace?: string) =>
  asks(who, ms, { entries, latest: name(who), isMarked: true }, replace);
const supersededBy = (who: string, by: string, ms: number, replace?: string) =>
  entry('acquire', request(who, replace), [ms - 500, ms], 'Superseded', { by });
const check = (...history: Entry[]) => promises(replacedRightly(history, KEY));

const [a, b] = [joins('a', 1000), joins('b', 1100)];

it('a request fails with Superseded only after a newer one has joined', () => {
  expect(check(a, b, supersededBy('a', 'b', 1200, 'waiting'))).toEqual([]);
  expect(check(a, b, supersededBy('b', 'a', 1200, 'waiting'))).toEqual([SUPERSEDED_RIGHTLY]);
  expect(check(a, b, supersededBy('a', 'b', 1050, 'waiting'))).toEqual([SUPERSEDED_RIGHTLY]);
  expect(check(a, b, supersededBy('a', 'c', 1200, 'waiting'))).toEqual([SUPERSEDED_RIGHTLY]);
  const other = asks('c', 1050, { latest: name('c') }, '');
  expect(check(a, other, b, supersededBy('c', 'b', 1200))).toEqual([SUPERSEDED_RIGHTLY]);
});

it('a superseded request is not granted the key, unless it joins again', () => {
  const gets = asks('x', 1200, { entries: [holder('a')], latest: name('b') });
  expect(check(a, b, gets)).toEqual([NO_OLDER]);
  expect(check(joins('b', 900), a, gets)).toEqual([]);
  expect(check(a, b, joins('a', 1150), gets)).toEqual([]);
  expect(check(a, b, { ...asks('rust', 1150, {}), foreign: true }, gets)).toEqual([]);
  const held = joins('a', 1000, [holder('a')]);
  expect(check(held, joins('b', 1100, [holder('a')]), asks('x', 1150, { latest: name('b') }), gets)).toEqual([]);
});

it('the next heartbeat of a holder fails, if both say `running`', () => {
  const beat = (ms: number) =>
    entry('heartbeat', { key: KEY, leaseId: `e.${name('h')}.${UUID}` }, [ms, ms + 10], 'ok', {});
  const holds = (replace: string) => asks('h', 500, { entries: [holder('h')] }, replace);
  const comes = (replace: string) => joins('b', 1000, [holder('h')], replace);
  expect(check(holds('running'), comes('running'), beat(4000))).toEqual([HOLDER_ASKED]);
  expect(check(holds('running'), comes('running'), beat(1200))).toEqual([]);
  expect(check(holds('running'), comes('waiting'), beat(4000))).toEqual([]);
  expect(check(holds('waiting'), comes('running'), beat(4000))).toEqual([]);
  const struck = { ...comes('running'), faults: ['UpdateItem slow'] };
  expect(check(holds('running'), struck, beat(4000))).toEqual([]);
});

it('a superseded request takes one of the slots for remembered requests', () => {
  const ring = (names: string[]) => names.map((one) => ({ name: one, broken: undefined }));
  const write = (ms: number, state: Partial<LockState>) => asks('x', ms, state);
  const gone = [write(100, { entries: [holder('e')] }), write(200, { ring: ring([name('e')]) })];
  const replaced = Array.from({ length: 8 }, (_, nth) => [
    write(300 + 20 * nth, { latest: `r${nth}`, ring: ring(['other']) }),
    write(310 + 20 * nth, { latest: 'next', ring: ring([`r${nth}`]) }),
  ]).flat();
  const again = write(900, { entries: [{ ...holder('e'), id: 'again' }] });
  expect(promises(neverTooManyPermits([...gone, again], KEY))).toEqual(['a request has one permit']);
  expect(promises(neverTooManyPermits([...gone, ...replaced, again], KEY))).toEqual([]);
});
