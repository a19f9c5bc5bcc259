import type { Holdfast, isHoldfastError } from '../../clients/typescript/src/index.ts';

/** The clients that play the scenario. A test of another runtime passes those of its own build. */
export interface Parties {
  holdfast: Holdfast;
  /** A second holder on the same deployment. */
  other: Holdfast;
  isHoldfastError: typeof isHoldfastError;
  /** The namespace of both clients. The paths of objects begin with it. */
  namespace?: string;
  /** Whether the transport reaches the calls that are not about leases. */
  everything: boolean;
}

/** A holder learns of a break at its next heartbeat, after a third of the ttl. A machine that stalls for two thirds of the ttl loses the lease. */
const TTL_SECONDS = 30;

/** The public surface over a real service, in whatever runtime this is. @throws Error at the first thing that is wrong */
export async function scenario({
  holdfast,
  other,
  isHoldfastError,
  namespace,
  everything,
}: Parties): Promise<string[]> {
  const done: string[] = [];
  const key = (name: string) => `scenario/${crypto.randomUUID()}/${name}`;
  const codeOf = (act: Promise<unknown>) =>
    act.then(
      () => 'no error',
      (error) => (isHoldfastError(error) ? error.code : `no HoldfastError: ${error}`),
    );
  const textOf = (act: Promise<unknown>) =>
    act.then(
      () => 'no error',
      (error: Error) => error.message,
    );
  const check = async (what: string, act: () => Promise<void>) => {
    await act();
    done.push(what);
  };
  const openOf = async (name: string) => ((await other.readRates({ key: name })) as { open: number }).open;
  /** The parts mostly wait, so they run at once. */
  const begun: Promise<void>[] = [];
  const begin = (what: string, act: () => Promise<void>) => void begun.push(check(what, act));

  begin('withLease returns, and releases', async () => {
    const name = key('plain ü');
    const fence = await holdfast.withLease(name, { ttlSeconds: 60, data: { a: [1] } }, async (lease) => {
      const { state, holder, data } = await other.readLease(name);
      equal([state, holder, data], ['held', 'scenario', { a: [1] }]);
      equal(await codeOf(other.acquire(name)), 'LeaseHeld');
      equal(await textOf(other.acquire(name)), `${name} is held by scenario until ${lease.expiresAt}`);
      lease.assertHeld();
      return lease.fence;
    });
    equal((await other.readLease(name)).state, 'released');
    const next = await other.acquire(name, { fair: false });
    equal([next.fence > fence, next.previous?.holder, next.previous?.ended], [true, 'scenario', 'released']);
    equal(await next.release(), true);
  });

  begin('a lease lives on by heartbeats, and another caller waits for it', async () => {
    const name = key('beats');
    const lease = await holdfast.acquire(name, { ttlSeconds: TTL_SECONDS });
    const first = lease.expiresAt;
    const waiting = other.acquire(name, { waitMs: 60_000, ttlSeconds: 60 });
    await until(async () => lease.expiresAt > first);
    equal([lease.held, lease.signal.aborted], [true, false]);
    await lease.release();
    const next = await waiting;
    equal(next.fence > lease.fence, true);
    equal(await next.release(), true);
  });

  begin('a broken lease is lost, and its signal aborts', async () => {
    const name = key('broken');
    const lost = holdfast.withLease(name, { ttlSeconds: TTL_SECONDS }, async (lease) => {
      await other.breakLease({ key: name, fence: lease.fence });
      await until(async () => lease.signal.aborted); // a timer of the test's, for those of a lease keep no process alive
    });
    const error = await lost.catch((reason) => reason);
    equal(isHoldfastError(error, 'LeaseLost') && error.reason, 'broken');
  });

  begin('the newest request runs, and replaces and stops older ones', async () => {
    const name = key('replaced');
    const options = { replace: 'running', waitMs: 60_000, ttlSeconds: TTL_SECONDS } as const;
    const old = await holdfast.acquire(name, options);
    const replaced = holdfast.acquire(name, options).catch((reason) => reason);
    await until(async () => (await other.readLease(name)).waiting === 1);
    const newest = other.acquire(name, options);
    const error = await replaced;
    equal(isHoldfastError(error, 'Superseded') && error.by, 'other');
    await until(async () => old.signal.aborted);
    equal(isHoldfastError(old.lost, 'LeaseLost') && old.lost.reason, 'superseded');
    equal(await old.release(), true);
    const { fence, previous, release } = await newest;
    equal([fence > old.fence, previous?.ended], [true, 'superseded']);
    equal(await release(), true);
    equal(await codeOf(holdfast.acquire(name, { replace: 'waiting' })), 'InvalidRequest');
  });

  begin('an aborted wait leaves nothing behind', async () => {
    const name = key('aborted');
    const lease = await holdfast.acquire(name, { ttlSeconds: 60 });
    const controller = new AbortController();
    const waiting = other.acquire(name, { waitMs: 60_000, signal: controller.signal }).catch((reason) => reason);
    await new Promise((resolve) => setTimeout(resolve, 300));
    controller.abort('enough');
    equal(await waiting, 'enough');
    await lease.release();
    // The request that was under way has been withdrawn, or brings a grant that is given up.
    await new Promise((resolve) => setTimeout(resolve, 1000));
    await until(async () => (await holdfast.readLease(name)).state === 'released');
  });

  begin('permits: two at once, and a writer alone', async () => {
    const name = key('shared');
    const [one, two] = [await holdfast.acquire(name, { limit: 2 }), await other.acquire(name, { limit: 2 })];
    const held = await other.acquire(name, { limit: 2 }).catch((reason) => reason);
    equal(isHoldfastError(held, 'LeaseHeld') && [held.used, held.holders?.length], [2, 2]);
    const [first] = isHoldfastError(held, 'LeaseHeld') ? (held.holders ?? []) : [];
    const text = `${name} is held by ${first?.holder} until ${first?.expiresAt}, and has no room: the holders use 2, and the limit is 2`;
    equal((held as Error).message, text);
    const writing = other.acquire(name, { mode: 'exclusive', waitMs: 60_000 });
    await until(async () => (await holdfast.readLease(name)).waiting === 1);
    await two.release();
    await holdfast.breakLease({ key: name, fence: one.fence });
    const writer = await writing;
    const { used, holders } = await holdfast.readLease(name);
    equal([used, holders.map(({ mode, fence }) => [mode, fence])], [1, [['exclusive', writer.fence]]]);
    equal(await writer.release(), true);
    await one.release();
  });

  begin('work runs once for a slot, its result is for all, and an operator forgets it', async () => {
    const name = key('once');
    const work = async (run: { slot: string; held: boolean }) => {
      equal(await codeOf(other.once(name, { slot: 'b' }, () => 'never')), 'LeaseHeld');
      return { slot: run.slot, held: run.held };
    };
    const ran = await holdfast.once(name, { slot: 'b' }, work);
    equal([ran.outcome, ran.result, ran.by], ['ran', { slot: 'b', held: true }, 'scenario']);
    const done = await other.once(name, { slot: 'b', waitMs: 1000 }, () => 'never');
    equal([done.outcome, done.result, done.by, done.fence], ['done', ran.result, 'scenario', ran.fence]);
    equal((await other.once(name, { slot: 'a' }, () => 'never')).outcome, 'superseded');
    equal(await codeOf(other.once(name, { slot: 'b', inputHash: 'x' }, () => 'never')), 'Conflict');
    equal(await codeOf(other.forget({ key: name, fence: 0 })), 'Conflict');
    equal((await other.forget({ key: name, fence: ran.fence ?? 0 })).slot, 'b');
    const failed = await other
      .once(name, { slot: 'a' }, () => Promise.reject(new Error('boom')))
      .catch((error) => error);
    equal(failed.message, 'boom');
    const again = await holdfast.once(name, { slot: 'a' }, ({ previous }) => previous?.ended);
    equal([again.outcome, again.result], ['ran', 'released']);
  });

  begin('starts keep a rate, are settled or cancelled, and an operator forgets them', async () => {
    const name = key('rate');
    const startedAt = performance.now();
    const rate = { limit: 2, per: '1s', waitMs: 60_000 };
    await Promise.all([holdfast.rate(name, rate), other.rate(name, rate), other.rate(name, rate)]);
    equal(performance.now() - startedAt > 900, true);
    const day = { limit: 1, per: '1d' };
    const { settle } = await holdfast.rate(key('day'), { ...day, settle: true });
    equal([await settle({ requests: 0 }), await settle({ requests: 0 })], [true, false]);
    const held = key('held');
    await holdfast.withLease(held, { rates: [day], settle: true }, async (lease) => {
      const refused = await other.rate(held, day).catch((reason) => reason);
      equal(isHoldfastError(refused, 'RateExceeded') && refused.boundBy, 'requests');
      const controller = new AbortController();
      const { signal } = controller;
      const waiting = other.rate(held, { ...day, settle: true, waitMs: Infinity, signal }).catch((reason) => reason);
      await until(async () => (await openOf(held)) === 2);
      controller.abort('enough');
      equal(await waiting, 'enough');
      await until(async () => (await openOf(held)) === 1);
      equal(await lease.settle({ requests: 2 }), true);
    });
    const { paidUntil } = (await other.readRates({ key: held })) as { paidUntil: string };
    equal(await codeOf(other.rateForget({ key: held, paidUntil: new Date(0).toISOString() })), 'Conflict');
    equal((await other.rateForget({ key: held, paidUntil })).forgotten, true);
  });

  begin('an operator pauses a key, and a waiter that it moves goes first', async () => {
    const name = key('paused');
    const lease = await holdfast.acquire(name);
    await other.cap({ key: name, limit: 0, reason: 'down' });
    const held = await other.acquire(name).catch((reason) => reason);
    equal(isHoldfastError(held, 'LeaseHeld') && [held.cap?.limit, held.cap?.reason], [0, 'down']);
    equal(await codeOf(other.rate(name, { limit: 1, per: '1s' })), 'RateExceeded');
    await lease.release();
    const order: string[] = [];
    const waits = ['a', 'b'].map((holder) =>
      holdfast.withLease(name, { holder, waitMs: 60_000 }, () => void order.push(holder)),
    );
    await until(async () => (await other.readLease(name)).waiting === 2);
    const { waiters = [] } = await other.readLease(name, { waiters: true });
    const { ticket = '', holder } = waiters[1] ?? {};
    equal((await other.runNext({ key: name, ticket })).moved, true);
    const { before, cap } = await other.cap({ key: name, limit: null });
    equal([before?.limit, cap], [0, null]);
    await Promise.all(waits);
    equal(order[0], holder);
  });

  begin('errors have their fields', async () => {
    const error = await holdfast.acquire('', {}).catch((reason) => reason);
    equal(isHoldfastError(error, 'InvalidRequest') && error.issues[0]?.path, 'key');
    equal(isHoldfastError(error, 'LeaseHeld'), false);
    equal(await codeOf(holdfast.breakLease({ key: key('nobody'), fence: 1 })), 'NotFound');
  });

  begin('leases are listed page by page', async () => {
    const prefix = key('list');
    const leases = await Promise.all([1, 2, 3, 4, 5].map((at) => holdfast.acquire(`${prefix}/${at}`)));
    const listed: string[] = [];
    for await (const { key: one } of holdfast.leases({ prefix, state: 'held', limit: 2 })) listed.push(one);
    equal(
      listed.sort(),
      [1, 2, 3, 4, 5].map((at) => `${prefix}/${at}`),
    );
    await Promise.all(leases.map((lease) => lease.release()));
  });

  begin('a leader leads until it stops', async () => {
    const controller = new AbortController();
    const name = key('leader');
    const terms: number[] = [];
    const losses: string[] = [];
    await holdfast.lead(name, {
      ttlSeconds: TTL_SECONDS,
      signal: controller.signal,
      onElected: (lease) => {
        terms.push(lease.fence);
        return terms.length === 1 ? other.breakLease({ key: name, fence: lease.fence }) : controller.abort();
      },
      onLost: (error) => losses.push((error as { reason?: string }).reason ?? ''),
    });
    equal([terms.length, (terms[1] ?? 0) > (terms[0] ?? 0), losses], [2, true, ['broken']]);
    equal((await holdfast.readLease(name)).state, 'released');
  });

  await Promise.all(begun);

  const pathOf = (name: string) => (namespace === undefined ? key(name) : `${namespace}/${key(name)}`);
  if (everything) await others({ holdfast, key, pathOf, codeOf, check });
  return done;
}

interface Tools {
  holdfast: Holdfast;
  key(name: string): string;
  pathOf(name: string): string;
  codeOf(act: Promise<unknown>): Promise<string>;
  check(what: string, act: () => Promise<void>): Promise<void>;
}

async function others({ holdfast, key, pathOf, codeOf, check }: Tools): Promise<void> {
  await check('small content is committed at once, as text, bytes or stream', async () => {
    const path = pathOf('small');
    const bytes = new Uint8Array([0, 255, 1]);
    const first = await holdfast.commit({ path, ifNoneMatch: '*', body: 'text' });
    const second = await holdfast.commit({ path, ifMatch: String(first.etag), body: bytes });
    const third = await holdfast.commit({
      path,
      ifMatch: String(second.etag),
      body: new Blob([bytes, bytes]).stream(),
    });
    equal([second.size, third.size], [3, 6]);
    equal(await codeOf(holdfast.commit({ path, ifNoneMatch: '*', body: 'late' })), 'PreconditionFailed');
    equal((await holdfast.readCommit({ path })).etag, third.etag);
  });

  await check('large content is uploaded first, and committed under a lease', async () => {
    const path = pathOf('large');
    const stream = new Blob([new Uint8Array(1024 ** 2), 'and more']).stream();
    const [lease, late] = await Promise.all([holdfast.acquire(key('a')), holdfast.acquire(key('b'))]);
    const large = { ifNoneMatch: '*' as const, contentType: 'a/b' };
    const { size } = await holdfast.commitUnder(lease, { ...large, path, body: stream, sizeBytes: 1024 ** 2 + 8 });
    equal(size, 1024 ** 2 + 8);
    const other = { ...large, path: `${path}/other` };
    const held = await holdfast.commit({ ...other, body: new Blob([new Uint8Array(2 * 1024 ** 2)]).stream() });
    equal(held.size, 2 * 1024 ** 2);
    for (const sizeBytes of [2 * 1024 ** 2 - 1, 2 * 1024 ** 2 + 1]) {
      const body = new Blob([new Uint8Array(2 * 1024 ** 2)]).stream();
      equal(await codeOf(holdfast.commit({ ...other, body, sizeBytes })), 'InvalidRequest');
    }
    const { fence, contentType, etag } = await holdfast.readCommit({ path });
    equal([fence?.key, fence?.token, contentType], [lease.key, lease.fence, 'a/b']);
    equal(await codeOf(holdfast.commitUnder(late, { path, ifMatch: etag ?? '', body: 'x' })), 'FenceRejected');
    await Promise.all([lease.release(), late.release()]);
    equal(await codeOf(holdfast.commitUnder(lease, { path, ifMatch: etag ?? '', body: 'x' })), 'LeaseLost');
  });

  await check('the nameservice', async () => {
    const prefix = `s${crypto.randomUUID()}`;
    for (const at of [1, 2, 3]) await holdfast.publish({ op: 'initLedger', alias: `${prefix}-${at}` });
    const { outcome } = await holdfast.publish({ op: 'publishCommit', alias: `${prefix}-1`, address: 'a', t: 2 });
    equal(outcome, 'updated');
    equal((await holdfast.readName(`${prefix}-1`)).alias, `${prefix}-1:main`);
    const listed: string[] = [];
    for await (const { alias } of holdfast.names({ prefix, limit: 2 })) listed.push(alias);
    equal(
      listed.sort(),
      [1, 2, 3].map((at) => `${prefix}-${at}:main`),
    );
    equal(await codeOf(holdfast.readName(`${prefix}-4`)), 'NotFound');
  });

  await check('the report of what has expired', async () => {
    const { reportId, complete } = await holdfast.report({}, { timeoutMs: 60_000 });
    equal(complete, true);
    equal((await holdfast.readExpired({ reportId })).reportId, reportId);
    const rows: unknown[] = [];
    for await (const row of holdfast.expired({ reportId, limit: 1 })) rows.push(row);
    const { dryRun, deleted } = await holdfast.clean({ reportId, olderThanSeconds: 0 });
    equal([dryRun, deleted.count <= rows.length], [true, true]);
  });

  await check('a task that cannot be parked, or is not', async () => {
    const ticket = '000001795215137091-4f0c1a3e-6a52-4a3b-9b44-3f1f4e1b7a10';
    equal((await holdfast.cancelWaiter({ key: key('queue'), ticket })).cancelled, false);
    equal(await codeOf(holdfast.park({ key: key('queue'), taskToken: '' })), 'InvalidRequest');
  });
}

function equal(actual: unknown, expected: unknown): void {
  const [left, right] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (left !== right) throw new Error(`expected ${right}, got ${left}`);
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 450; tries++) {
    if (await holds()) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error('it did not come true');
}
