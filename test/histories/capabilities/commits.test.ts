import { expect, it } from 'vitest';
import type { WorldFacts } from '../../../verification/histories/caller.ts';
import { etagInParts, etagOf } from '../../../verification/histories/capabilities/commits.model.ts';
import { commits, oneWinner, repeatsSaySo, staleFences } from '../../../verification/histories/capabilities/commits.ts';
import { AFTERWARDS } from '../../../verification/histories/capability.ts';
import { entry, facts, promises } from '../../../verification/histories/handmade.ts';
import type { Entry } from '../../../verification/histories/history.ts';

const put = (
  id: string,
  expected: string | null,
  from: [number, number?],
  outcome?: string,
  body: object = {},
  fence?: number,
) =>
  entry(
    'commit',
    {
      path: 'p',
      ...(expected === null ? { ifNoneMatch: '*' } : { ifMatch: expected }),
      body: id,
      commitId: id,
      ...(fence !== undefined && { fence: { key: 'k', token: fence } }),
    },
    from,
    outcome,
    { path: 'p', ...(outcome === 'ok' && { etag: etagOf(id), commitId: id, repeated: false }), ...body },
  );
const seen = (id: string | null, from: [number, number], fence?: number) =>
  entry('readCommit', { path: 'p' }, from, 'ok', {
    etag: id === null ? null : etagOf(id),
    commitId: id,
    fence: fence === undefined ? null : { key: 'k', token: fence },
  });
const check = (entries: Entry[], more: Partial<WorldFacts> = {}) =>
  promises(commits.check(entries, { ...facts, ...more }));
const lossless = 'no acknowledged commit is lost, none lands twice, and every refusal is true';

it('the checker of commits accepts one commit after the other', () => {
  const history = [
    put('a', null, [0, 10], 'ok'),
    put('b', null, [20, 30], 'PreconditionFailed', { etag: etagOf('a') }),
    put('c', etagOf('a'), [40, 50], 'ok'),
    seen('c', [60, 70]),
    put('a', null, [80, 90], 'ok', { etag: null, currentEtag: etagOf('c'), repeated: true }),
  ];
  expect(check(history)).toEqual([]);
});

it('the checker of commits finds two winners for one precondition', () => {
  const history = [put('a', null, [0, 10], 'ok'), put('b', null, [5, 15], 'ok')];
  expect(promises(oneWinner(history))).toEqual(['one winner for each precondition']);
  expect(check(history)).toContain('one winner for each precondition');
  expect(oneWinner([put('a', null, [0, 10], 'ok'), put('a', null, [20, 30], 'ok', { repeated: true })])).toEqual([]);
});

it('the checker of commits finds a repeat that is answered as new', () => {
  const first = put('a', null, [0, 10], 'ok');
  expect(promises(repeatsSaySo([first, put('a', null, [20, 30], 'ok')]))).toEqual([
    'a repeat of a commit says that it is one',
  ]);
  expect(repeatsSaySo([first, put('a', null, [20, 30], 'ok', { repeated: true })])).toEqual([]);
  // If the two calls overlap, the checker cannot know which of them wrote the object.
  expect(repeatsSaySo([first, put('a', null, [5, 30], 'ok')])).toEqual([]);
});

it('the checker of commits finds an acknowledged commit that is gone', () => {
  expect(check([put('a', null, [0, 10], 'ok'), seen(null, [20, 30])])).toEqual([lossless]);
  expect(check([put('a', null, [0, 10], 'ok'), put('b', etagOf('a'), [20, 30], 'ok'), seen('a', [40, 50])])).toEqual([
    lossless,
  ]);
});

it('the checker of commits finds a refused commit that landed', () => {
  const refused = [put('a', null, [0, 10], 'PreconditionFailed', { etag: etagOf('b') }), put('b', null, [0, 10], 'ok')];
  expect(check(refused)).toEqual([]);
  expect(check([put('a', null, [0, 10], 'Unavailable'), seen('a', [20, 30])])).toEqual([lossless]);
  const landed = put('a', null, [40, 50], 'PreconditionFailed', { etag: etagOf('b') });
  expect(check([put('a', null, [0, 10], 'ok'), put('b', etagOf('a'), [20, 30], 'ok'), landed])).toEqual([lossless]);
});

it('a repeated commit without a record may be refused once its object forgot it', () => {
  const chain = (length: number) =>
    Array.from({ length }, (_, nth) =>
      put(`c${nth}`, nth === 0 ? null : etagOf(`c${nth - 1}`), [nth * 10, nth * 10 + 5], 'ok', {}, nth + 1),
    );
  const native = { protocol: 'native' } as const;
  for (const [outcome, body] of [
    ['FenceRejected', { highest: 9 }],
    ['PreconditionFailed', { etag: etagOf('c8') }],
  ] as const) {
    const again = put('c0', null, [200, 210], outcome, body, 1);
    expect(check([...chain(9), again], native)).toEqual([]);
    expect(check([...chain(9), again], { protocol: 'dynamo' })).toEqual([lossless]);
    const last = { FenceRejected: { highest: 8 }, PreconditionFailed: { etag: etagOf('c7') } }[outcome];
    expect(check([...chain(8), { ...again, body: { ...again.body, ...last } }], native)).toEqual([lossless]);
  }
});

it('a commit of unknown outcome lands at most once, and is decided afterwards', () => {
  const lost = put('a', null, [0, 10], 'OutcomeUnknown', { retryWith: { commitId: 'a' } });
  expect(check([lost, seen(null, [20, 30]), seen('a', [40, 50])])).toEqual([]);
  expect(check([lost, seen('a', [20, 30]), seen(null, [40, 50])])).toEqual([lossless]);
  const still = { ...put('a', null, [60, 70], 'OutcomeUnknown'), actor: AFTERWARDS };
  expect(check([lost, still])).toEqual(['each unknown outcome resolves by its commit id']);
  const resolved = { ...put('a', null, [60, 70], 'ok', { repeated: true }), actor: AFTERWARDS };
  expect(check([lost, seen('a', [20, 30]), resolved])).toEqual([]);
});

it('the checker of commits finds a stale fence after a newer one', () => {
  const newer = put('a', null, [0, 10], 'ok', {}, 9);
  const older = put('b', etagOf('a'), [20, 30], 'ok', {}, 8);
  expect(promises(staleFences([newer, older]))).toEqual(['no commit with a stale fence lands after a newer one']);
  expect(check([newer, older])).toContain('no commit with a stale fence lands after a newer one');
  expect(check([newer, put('b', etagOf('a'), [20, 30], 'FenceRejected', { highest: 9 }, 8)])).toEqual([]);
  expect(check([newer, put('b', etagOf('a'), [20, 30], 'FenceRejected', { highest: 9 }, 10)])).toEqual([lossless]);
  expect(check([newer, seen('a', [20, 30])])).toEqual([lossless]);
});

it('an administrator replaces a fence once, and only the one they saw', () => {
  const reset = (
    from: [number, number?],
    outcome: string,
    { etag = etagOf('a'), seen = 9, fence = null as object | null, ...body }: Record<string, unknown> = {},
  ) =>
    entry(
      'resetFence',
      { path: 'p', ifMatch: etag, expectedFence: { key: 'k', token: seen }, fence, commitId: `r${from[0]}` },
      from,
      outcome,
      {
        path: 'p',
        ...(outcome === 'ok' ? { etag: etagInParts(etagOf('a')), commitId: `r${from[0]}`, repeated: false } : { etag }),
        ...body,
      },
    );
  const read = (from: [number, number], fence: number | undefined, commitId: string) =>
    entry('readCommit', { path: 'p' }, from, 'ok', {
      etag: etagInParts(etagOf('a')),
      commitId,
      fence: fence === undefined ? null : { key: 'k', token: fence },
    });
  const newer = put('a', null, [0, 10], 'ok', {}, 9);
  const older = put('b', etagInParts(etagOf('a')), [40, 50], 'ok', {}, 8);
  const back = { fence: { key: 'k', token: 7 } };
  expect(check([newer, reset([20, 30], 'ok', back), older])).toEqual([]);
  expect(check([newer, reset([20, 30], 'ok'), read([40, 50], undefined, 'r20')])).toEqual([]);
  expect(check([newer, reset([20, 30], 'ok'), read([40, 50], 9, 'r20')])).toEqual([lossless]);
  expect(check([newer, reset([20, 30], 'ok', { seen: 8 })])).toEqual([lossless]);
  expect(check([newer, reset([20, 30], 'PreconditionFailed', { etag: etagOf('a') })])).toEqual([lossless]);
  // A commit of the old fence's holder expects the old ETag, so it must fail.
  expect(check([newer, reset([20, 30], 'ok', back), put('b', etagOf('a'), [40, 50], 'ok', {}, 9)])).toContain(
    'one winner for each precondition',
  );
  // A second reset could bring an earlier ETag back.
  const again = { etag: etagInParts(etagOf('a')), seen: 7 };
  expect(check([newer, reset([20, 30], 'ok', back), reset([40, 50], 'ok', again)])).toEqual([lossless]);
  expect(check([newer, reset([20, 30], 'ok', back), reset([40, 50], 'PreconditionFailed', again)])).toEqual([]);
  // A commit that ended before the newer one began does not explain its fence.
  const before = put('z', null, [0, 10], 'ok', {}, 5);
  const lifted = reset([20, 30], 'ok', { etag: etagOf('z'), seen: 5, fence: null });
  expect(
    promises(
      staleFences([before, lifted, put('a', null, [40, 50], 'ok', {}, 9), put('b', null, [60, 70], 'ok', {}, 8)]),
    ),
  ).toEqual(['no commit with a stale fence lands after a newer one']);
  // A reset without an answer may land at any time.
  const lost = { ...reset([20], ''), outcome: 'OutcomeUnknown' };
  expect(check([newer, lost, seen('a', [30, 40], 9), read([50, 60], undefined, 'r20')])).toEqual([]);
});

it('the checker of commits finds one in progress without a reason, or stuck afterwards', () => {
  const blocked = put(AFTERWARDS, null, [0, 10], 'CommitInProgress');
  expect(check([blocked])).toEqual([lossless]);
  expect(check([blocked], { foreignCommits: true })).toEqual([]);
  expect(check([{ ...blocked, actor: AFTERWARDS }], { foreignCommits: true })).toEqual(['no path is stuck']);
});

it("the checker of commits accepts a commit of an upload's bytes", () => {
  const staged = put('a', null, [0, 10], 'ok');
  expect(check([{ ...staged, input: { ...staged.input, source: 'u' } }, seen('a', [20, 30])])).toEqual([]);
});

it("the checker of commits counts a foreign writer's write as a commit", () => {
  const rust = (id: string, expected: string | null, from: [number, number]) =>
    entry(
      'rustPut',
      { path: 'p', ...(expected ? { ifMatch: expected } : { ifNoneMatch: '*' }), body: id },
      from,
      'ok',
      { etag: etagOf(id) },
      { foreign: true },
    );
  expect(check([put('a', null, [0, 10], 'ok'), rust('r', etagOf('a'), [20, 30])], { foreignCommits: true })).toEqual(
    [],
  );
  const overwritten = [
    put('a', null, [0, 10], 'ok'),
    put('b', etagOf('a'), [20, 30], 'ok'),
    rust('r', etagOf('a'), [15, 50]),
  ];
  expect(check(overwritten, { foreignCommits: true })).toContain('one winner for each precondition');
});
