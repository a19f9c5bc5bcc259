import { describe, expect, it } from 'vitest';
import { dynamodbClient } from '../../shared/aws/dynamodb.ts';
import { seededIds } from '../support/chance/seed.ts';
import { call, type Fault, type Requests } from '../support/emulators/aws.ts';
import { networkError } from '../support/faults/cuttable.ts';
import { aFew } from '../support/time/rounds.ts';
import { type CommitWorld, commitWorld, foreignRecord, PROTOCOLS } from '../support/worlds/commits.ts';
import { failure } from '../support/worlds/leases.ts';
import { ObjectStoreWriter } from '../support/worlds/object-store.ts';

const LARGE = 'x'.repeat(6 * 1024 ** 2 + 1);

/** Stops a writer until the test calls `open`. */
function gate() {
  let open = () => {};
  let arrive = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const arrived = new Promise<void>((resolve) => {
    arrive = resolve;
  });
  return {
    arrived,
    open: () => open(),
    before: (async (send) => {
      arrive();
      await opened;
      return send();
    }) satisfies Fault as Fault,
    after: (async (send) => {
      await send();
      arrive();
      await opened;
      throw new Error('the process is dead');
    }) satisfies Fault as Fault,
  };
}

/** The request never arrives, and the client sees only a closed connection. */
const vanished: Fault = async () => {
  throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
};

const times = (count: number, fault: Fault): Fault[] => Array.from({ length: count }, () => fault);

/** The kinds of commit, and the requests that each consists of, in order. */
const KINDS = {
  inline: ['HeadObject', 'PutItem', 'PutObject'],
  copy: ['HeadObject', 'PutItem', 'CopyObject'],
  parts: ['HeadObject', 'CreateMultipartUpload', 'UploadPartCopy', 'PutItem', 'CompleteMultipartUpload'],
} as const;

const steps = Object.entries(KINDS).flatMap(([kind, commands]) => commands.map((command) => [kind, command] as const));

const staged = new WeakMap<CommitWorld, Record<string, string>>();

/** The content of a commit, by its kind. Each world stages it only the first time. */
async function content(world: CommitWorld, kind: string) {
  if (kind === 'inline') return { body: 'mine' };
  const uploads = staged.get(world) ?? { copy: await world.stage('mine'), parts: await world.stage(LARGE) };
  staged.set(world, uploads);
  return { source: uploads[kind] };
}

const client = (service: { records: Requests; objects: Requests }, command: string) =>
  command === 'PutItem' ? service.records : service.objects;

describe.each(aFew(1, PROTOCOLS))('lost replies and crashes, protocol %s', async (protocol) => {
  const world = await commitWorld({ protocol });
  const own = steps.filter(
    // The native protocol does not write records, and creates an inline object with a single PUT.
    ([kind, command]) =>
      protocol === 'dynamo' || (command !== 'PutItem' && `${kind} ${command}` !== 'inline HeadObject'),
  );
  let paths = 0;

  // Objects in parts are large: each of these tests takes as long as three others.
  const [large = [], small = []] = [true, false].map((isLarge) =>
    own.filter(([kind]) => (kind === 'parts') === isLarge),
  );

  it.each([...small, ...aFew(2, large)])(
    'a lost reply (%s) of %s is found out within the call',
    async (kind, command) => {
      const path = `lost/${paths++}`;
      const service = world.another();
      client(service, command).faultsOf[command] = ['lostReply'];
      const input = { path, ifNoneMatch: '*', ...(await content(world, kind)), commitId: 'mine' };
      expect(await service.commit(input)).toMatchObject({ path, repeated: false });
      expect(await world.commit(input)).toMatchObject({ commitId: 'mine', repeated: true });
      expect((await world.body(path))?.slice(0, 4)).toBe(kind === 'parts' ? 'xxxx' : 'mine');
    },
  );

  const crashesOf = (some: typeof own) =>
    some.flatMap(([kind, command]) => [[kind, 'before', command] as const, [kind, 'after', command] as const]);

  it.each([...crashesOf(small), ...aFew(3, crashesOf(large))])(
    'a repeat (%s) after a crash %s %s commits once',
    async (kind, moment, command) => {
      const path = `crash/${paths++}`;
      const dying = world.another();
      const { arrived, [moment]: fault } = gate();
      client(dying, command).faultsOf[command] = [fault];
      const input = { path, ifNoneMatch: '*', ...(await content(world, kind)), commitId: 'mine' };
      dying.commit(input); // never ends
      await arrived;

      const landed = moment === 'after' && command === KINDS[kind as keyof typeof KINDS].at(-1);
      expect(await world.commit(input)).toMatchObject({ commitId: 'mine', repeated: landed });
      expect(await world.commit(input)).toMatchObject({ commitId: 'mine', repeated: true });
      const lost = await failure(world.commit({ ...input, commitId: 'other' }));
      expect(lost.code).toBe('PreconditionFailed');
    },
  );

  it.each(['error500', 'lostReply', vanished] as const)(
    'a repeat is recognised even if its first try is not answered (%s)',
    async (fault) => {
      const path = `repeat/${paths++}`;
      const input = { path, ifNoneMatch: '*', body: 'mine', commitId: 'mine' };
      const { etag } = await world.commit(input);
      const { commit, objects } = world.another();
      objects.faultsOf.PutObject = [fault];
      expect(await commit(input)).toMatchObject({ etag, repeated: true });
      const { etag: currentEtag } = await world.commit({ path, ifMatch: etag, body: 'theirs', commitId: 'theirs' });
      objects.faultsOf.PutObject = [fault];
      expect(await commit(input)).toMatchObject({ etag: null, currentEtag, size: null, repeated: true });
    },
  );

  it('an unknown outcome names its commit id, and a repeat with it is definite', async () => {
    for (const fault of ['lostReply', vanished] as const) {
      const path = `unknown/${paths++}`;
      const { commit, objects } = world.another();
      objects.faultsOf.PutObject = times(4, fault);
      objects.faultsOf.HeadObject = protocol === 'dynamo' ? ['none', ...times(4, 'error500')] : times(4, 'error500');
      const input = { path, ifNoneMatch: '*', body: 'mine' };
      const unknown = await failure(commit(input));
      expect(unknown).toMatchObject({
        code: 'OutcomeUnknown',
        context: { retryWith: { commitId: expect.any(String) } },
      });

      const repeat = { ...input, ...(unknown.context.retryWith as object) };
      expect(await world.commit(repeat)).toMatchObject({ repeated: fault === 'lostReply' });
      expect(await world.body(path)).toBe('mine');
    }
  });

  it('a commit has an unknown outcome as long as a write may still land', async () => {
    const { commit, objects } = world.another();
    objects.faultsOf.PutObject = times(4, vanished);
    const unknown = await failure(
      commit({ path: `doubt/${protocol}`, ifNoneMatch: '*', body: 'mine', commitId: 'mine' }),
    );
    expect(unknown).toMatchObject({ code: 'OutcomeUnknown', context: { retryWith: { commitId: 'mine' } } });
    expect(unknown.message).toContain(
      'the write was sent, has no response, and may still land: send the same call again',
    );
  });

  it.each(['EHOSTUNREACH', 'ENETUNREACH'])(
    'the outcome is unknown if %s is met on a connection in use',
    async (code) => {
      const lost =
        (syscall: string): Fault =>
        async () => {
          throw networkError(code, syscall);
        };
      for (const [syscall, expected] of [
        ['read', 'OutcomeUnknown'],
        ['connect', 'Unavailable'],
      ] as const) {
        const { commit, objects } = world.another();
        objects.faultsOf.PutObject = times(4, lost(syscall));
        const input = { path: `network/${code}/${syscall}`, ifNoneMatch: '*', body: 'mine', commitId: 'mine' };
        expect((await failure(commit(input))).code).toBe(expected);
      }
    },
  );

  it('the outcome is unknown even if the source has changed since the write', async () => {
    const path = `changed/${protocol}`;
    const { etag } = await world.commit({ path, ifNoneMatch: '*', body: 'before' });
    const source = await world.stage('after');
    const { commit, objects } = world.another();
    let late = async (): Promise<unknown> => undefined;
    objects.faultsOf.CopyObject = [
      async (send) => {
        late = send;
        throw networkError('ECONNRESET', 'read');
      },
      async () => {
        await world.rawPut(`.holdfast/staging/${source}`, 'before');
        throw Object.assign(new Error('conflict'), {
          name: 'ConditionalRequestConflict',
          $metadata: { httpStatusCode: 409 },
        });
      },
    ];
    const unknown = await failure(commit({ path, ifMatch: etag, source, commitId: 'mine' }));
    expect(unknown).toMatchObject({ code: 'OutcomeUnknown', context: { retryWith: { commitId: 'mine' } } });
    // The record must keep other writers waiting.
    if (protocol === 'dynamo')
      expect(await world.rawRecord(path, etag ?? '')).toMatchObject({ timeout: { N: '20000' } });
    await world.rawPut(`.holdfast/staging/${source}`, 'after');
    await late();
    expect(await world.body(path)).toBe('after');
  });

  it('a commit is tried again after a 409, even after an unanswered try', async () => {
    const path = `again/${protocol}`;
    const { commit, objects } = world.another();
    objects.faultsOf.PutObject = [vanished, { name: 'ConditionalRequestConflict', status: 409 }];
    expect(await commit({ path, ifNoneMatch: '*', body: 'mine', commitId: 'mine' })).toMatchObject({ path });
    expect(await world.body(path)).toBe('mine');
  });

  it('a commit has an unknown outcome even if a later write was refused permanently', async () => {
    const path = `refused/${protocol}`;
    const { commit, objects } = world.another();
    let late = async (): Promise<unknown> => undefined;
    objects.faultsOf.PutObject = [
      async (send) => {
        late = send;
        throw networkError('ECONNRESET', 'read');
      },
      { name: 'ConditionalRequestConflict', status: 409 },
      { name: 'AccessDenied', status: 403 },
    ];
    const input = { path, ifNoneMatch: '*', body: 'mine', commitId: 'mine' } as const;
    expect((await failure(commit(input))).code).toBe('OutcomeUnknown');
    await late();
    expect(await world.commit(input)).toMatchObject({ repeated: true });
  });

  it('the outcome is known once another commit has excluded the write', async () => {
    const path = `closed/${protocol}`;
    const { commit, objects } = world.another();
    const other: Fault = async () => {
      await world.commit({ path, ifNoneMatch: '*', body: 'theirs', commitId: 'theirs' });
      throw networkError('ECONNRESET', 'read');
    };
    objects.faultsOf.PutObject = [other, ...times(3, vanished)];
    const lost = await failure(commit({ path, ifNoneMatch: '*', body: 'mine', commitId: 'mine' }));
    expect(lost.code).toBe('PreconditionFailed');
    expect(await world.body(path)).toBe('theirs');
  });
});

describe('repeats', async () => {
  const world = await commitWorld();
  const { commit } = world;

  /** `count` other commits, each replacing the one before. */
  async function replace(path: string, count: number, etag: string): Promise<string> {
    let current = etag;
    for (let i = 0; i < count; i++)
      current = String((await commit({ path, ifMatch: current, body: `${etag}+${i}`, commitId: `o-${i}` })).etag);
    return current;
  }

  it.each([1, 7])('repeats are definite after %i other commits', async (count) => {
    const first = { path: `chain/${count}`, ifNoneMatch: '*', body: 'mine', commitId: 'mine' };
    const { etag } = await commit(first);
    const currentEtag = await replace(first.path, count, String(etag));
    expect(await commit(first)).toMatchObject({ repeated: true, etag: null, size: null, currentEtag });
  });

  it('repeats are unknown after more commits, while the record shows a try', async () => {
    const first = { path: 'chain/8', ifNoneMatch: '*', body: 'mine', commitId: 'mine' };
    await replace(first.path, 8, String((await commit(first)).etag));
    expect((await failure(commit(first))).code).toBe('OutcomeUnknown');
    expect((await failure(commit({ ...first, commitId: 'new' }))).code).toBe('PreconditionFailed');
    await world.deleteRecord(first.path); // as its TTL does
    expect((await failure(commit(first))).code).toBe('PreconditionFailed');
  });

  it('repeats have an unknown outcome after a foreign writer replaced the object', async () => {
    const first = { path: 'chain/foreign', ifNoneMatch: '*', body: 'mine', commitId: 'mine' };
    await commit(first);
    const etag = await world.rawPut(first.path, 'foreign');
    expect((await failure(commit(first))).code).toBe('OutcomeUnknown');
    // A commit on top of the foreign object does not make the outcome known either.
    await commit({ path: first.path, ifMatch: etag, body: 'next', commitId: 'next' });
    expect((await failure(commit(first))).code).toBe('OutcomeUnknown');
  });

  it('repeats are unknown after the object was deleted, while the record shows a try', async () => {
    const path = 'chain/deleted';
    const { etag } = await commit({ path, ifNoneMatch: '*', body: 'before' });
    const second = { path, ifMatch: etag, body: 'mine', commitId: 'mine' };
    await commit(second);
    await world.rawDelete(path);
    expect((await failure(commit(second))).code).toBe('OutcomeUnknown');
    expect((await failure(commit({ ...second, commitId: 'new' }))).code).toBe('PreconditionFailed');
  });

  it.each(['others', 'foreign', 'foreign take-over', 'many'])(
    'repeats do not deny a landed commit whose record was taken over (%s)',
    async (what) => {
      const path = `displaced/${what}`;
      const slow = world.another();
      const first = { path, ifNoneMatch: '*', body: 'mine', commitId: 'mine' };
      const writer = new ObjectStoreWriter({ ...world, clock: world.clock });
      const denied = { name: 'AccessDenied', status: 403 };
      slow.objects.faultsOf.PutObject = [
        async (send) => {
          for (let i = 0; i < (what === 'many' ? 20 : 1); i++) {
            const taker = world.another();
            taker.objects.faultsOf.PutObject = [denied];
            if (what === 'foreign take-over') await writer.lock(path, undefined, 0);
            else await failure(taker.commit({ ...first, body: 'theirs', commitId: `taker-${i}` }));
          }
          await send();
          throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
        },
        ...times(3, vanished),
      ];
      slow.objects.faultsOf.HeadObject = ['none', ...times(4, 'error500')];
      expect((await failure(slow.commit(first))).code).toBe('OutcomeUnknown');
      expect(await world.body(path)).toBe('mine');

      if (what === 'others') await replace(path, 8, String((await world.read(path)).etag));
      else await world.rawPut(path, 'foreign');
      expect((await failure(commit(first))).code).toBe('OutcomeUnknown');
      // A commit that the record does not name was never tried, unless the record has lost names.
      const unseen = await failure(commit({ ...first, commitId: 'new' }));
      const hidden = what === 'many' || what === 'foreign take-over';
      expect(unseen.code).toBe(hidden ? 'OutcomeUnknown' : 'PreconditionFailed');
    },
  );

  it('two calls with the same commit id in one millisecond remain two calls', async () => {
    const path = 'same-ms';
    const stalled = world.another();
    const { arrived, before, open } = gate();
    stalled.objects.faultsOf.PutObject = [before];
    const input = { path, ifNoneMatch: '*', body: 'mine', commitId: 'mine' };
    const first = stalled.commit(input);
    await arrived;
    const failing = world.another();
    failing.objects.faultsOf.PutObject = [{ name: 'AccessDenied', status: 403 }];
    expect((await failure(failing.commit(input))).code).toBe('Unavailable');
    // The write of the first call may still land, so the record has to keep others waiting.
    expect(await world.rawRecord(path)).toMatchObject({ generation: { N: '1' }, timeout: { N: '20000' } });
    open();
    expect(await first).toMatchObject({ repeated: false });
  });

  it('a call recognises its own record after a lost reply', async () => {
    const path = 'own-record';
    const service = world.another();
    service.records.faultsOf.PutItem = ['lostReply'];
    service.objects.faultsOf.PutObject = [
      async (send) => {
        await world.rawPut(path, 'foreign');
        return send();
      },
    ];
    const lost = await failure(service.commit({ path, ifNoneMatch: '*', body: 'mine', commitId: 'mine' }));
    expect(lost.code).toBe('PreconditionFailed');
  });

  it('repeats read the record and its first sight consistently', async () => {
    const dynamodb = dynamodbClient();
    const reads: unknown[] = [];
    dynamodb.middlewareStack.add(
      (next, context) => (args) => {
        if (context.commandName === 'GetItemCommand') reads.push(args.input);
        return next(args);
      },
      { step: 'initialize' },
    );
    await world.putRecord(foreignRecord('consistent', { generation: 1 }));
    await world.rawPut('consistent', 'foreign');
    const { commit: repeat } = world.another({ dynamodb });
    await failure(repeat({ path: 'consistent', ifNoneMatch: '*', body: 'mine', commitId: 'mine' }));
    expect(reads).toMatchObject([{ ConsistentRead: true }, { ConsistentRead: true }]);
  });

  it('repeats learn that they never landed if the whole chain is there', async () => {
    const dying = world.another();
    const { arrived, before } = gate();
    dying.objects.faultsOf.PutObject = [before];
    const first = { path: 'chain/never', ifNoneMatch: '*', body: 'mine', commitId: 'mine' };
    dying.commit(first);
    await arrived;
    const { etag } = await commit({ ...first, body: 'theirs', commitId: 'theirs' });
    expect(await failure(commit(first))).toMatchObject({ code: 'PreconditionFailed', context: { etag } });
  });

  it('repeats are refused if they ask for another write', async () => {
    const first = { path: 'other', ifNoneMatch: '*', body: 'mine', commitId: 'mine' };
    const role = 'arn:aws:sts::123456789012:assumed-role';
    const { etag } = await commit(first, call({ principal: `${role}/writer/session-1` }));
    const session2 = call({ principal: `${role}/writer/session-2` });
    expect(await commit(first, session2)).toMatchObject({ repeated: true });
    for (const [change, as] of [
      [{ body: 'other' }, session2],
      [{ ifNoneMatch: undefined, ifMatch: etag }, session2],
      [{}, call({ principal: `${role}/stranger/session-1` })],
    ] as const)
      expect(await failure(commit({ ...first, ...change }, as))).toMatchObject({
        code: 'InvalidRequest',
        context: { issues: [{ path: 'commitId' }] },
      });
    expect(await world.body('other')).toBe('mine');
  });

  it('repeats do not take a copy from another path for their own history', async () => {
    await commit({ path: 'from', ifNoneMatch: '*', body: 'mine', commitId: 'mine', fence: { key: 'k', token: 5 } });
    const writer = new ObjectStoreWriter({ ...world, clock: world.clock });
    await writer.copyIfNotExists('from', 'to');
    expect(await world.read('to')).toMatchObject({ commitId: null, fence: null });
    expect((await failure(commit({ path: 'to', ifNoneMatch: '*', body: 'mine', commitId: 'mine' }))).code).toBe(
      'PreconditionFailed',
    );
  });
});

describe('answers of S3', async () => {
  const world = await commitWorld();
  const conflict = { name: 'ConditionalRequestConflict', status: 409 };

  it.each([conflict.name, 'OperationAborted'])('409 is tried again (%s)', async (name) => {
    const { commit, objects } = world.another();
    objects.faultsOf.PutObject = [{ ...conflict, name }, conflict];
    expect(await commit({ path: name, ifNoneMatch: '*', body: 'mine' })).toMatchObject({ repeated: false });
    expect(objects.sent.filter((command) => command === 'PutObject')).toHaveLength(3);
  });

  it.each([
    [0, 25],
    [0.5, 38],
  ])('409 is tried again after 25 to 50 ms (%d)', async (random, rest) => {
    const { commit, objects } = world.another({ ids: { ...seededIds(1), random: () => random } });
    objects.faultsOf.PutObject = [conflict];
    const before = world.clock.now();
    await commit({ path: `409-rest-${random}`, ifNoneMatch: '*', body: 'mine' });
    expect(world.clock.now() - before).toBe(rest);
  });

  it('409 is tried again only with a second left for it', async () => {
    for (const [timeLeftMs, sends] of [
      [1000, 2],
      [999, 1],
    ] as const) {
      const { commit, objects } = world.another();
      objects.faultsOf.PutObject = [conflict];
      const input = { path: `409-${timeLeftMs}`, ifNoneMatch: '*', body: 'mine' };
      const outcome = await commit(input, call({ timeLeftMs: () => timeLeftMs })).catch(({ code }) => code);
      if (sends === 1) expect(outcome).toBe('Unavailable');
      else expect(outcome).toMatchObject({ generation: 1 });
      expect(objects.sent.filter((command) => command === 'PutObject')).toHaveLength(sends);
    }
  });

  it('409 begins a multipart upload again', async () => {
    const { commit, objects } = world.another();
    objects.faultsOf.CompleteMultipartUpload = [conflict];
    await commit({ path: '409-parts', ifNoneMatch: '*', source: await world.stage(LARGE) });
    expect(objects.sent.filter((command) => command === 'CreateMultipartUpload')).toHaveLength(2);
    expect(objects.sent).toContain('AbortMultipartUpload');
    expect(await world.body('409-parts')).toBe(LARGE);
  });

  it('a multipart upload that is gone is begun again', async () => {
    const { commit, objects } = world.another();
    objects.faultsOf.CompleteMultipartUpload = [{ name: 'NoSuchUpload', status: 404 }];
    const input = { path: 'no-such-upload', ifNoneMatch: '*', source: await world.stage(LARGE) };
    expect(await commit(input)).toMatchObject({ generation: 1, repeated: false });
    expect(objects.sent.filter((command) => command === 'CreateMultipartUpload')).toHaveLength(2);
  });

  it('an endless 409 of S3 is Unavailable, and does not delay other commits', async () => {
    const { commit, objects } = world.another();
    objects.faultsOf.PutObject = times(99, conflict);
    const ended = await failure(commit({ path: '409-always', ifNoneMatch: '*', body: 'mine' }));
    expect(ended).toMatchObject({ code: 'Unavailable', context: { retryAfterMs: 1000 } });
    // All nine generations are this call's own, so no other write can still land.
    expect(await world.rawRecord('409-always')).toMatchObject({ timeout: { N: '0' }, generation: { N: '9' } });
  });

  it.each(['inline', 'copy', 'parts'])(
    '404 under If-Match is PreconditionFailed with etag: null (%s)',
    async (kind) => {
      const path = `404/${kind}`;
      const { etag } = await world.commit({ path, ifNoneMatch: '*', body: 'before' });
      const { commit, objects } = world.another();
      const deleted: Fault = async (send) => {
        await world.rawDelete(path);
        return send();
      };
      objects.faultsOf[KINDS[kind as keyof typeof KINDS].at(-1) ?? ''] = [deleted];
      const gone = await failure(commit({ path, ifMatch: etag, ...(await content(world, kind)) }));
      expect(gone).toMatchObject({ code: 'PreconditionFailed', context: { path, etag: null } });
    },
  );

  const definite: [string, Fault[], string][] = [
    ['access denied', [{ name: 'AccessDenied', status: 403 }], 'Unavailable'],
    ['a missing bucket', [{ name: 'NoSuchBucket', status: 404 }], 'Unavailable'],
    ['a throttle', times(4, { name: 'SlowDown', status: 503 }), 'Throttled'],
  ];

  it.each(definite)('an answer %s of S3 leaves a record that does not delay other commits', async (_, faults, code) => {
    const path = `definite/${code}/${faults.length}${JSON.stringify(faults[0])}`.replaceAll(/[^\w/]/g, '');
    const { commit, objects } = world.another();
    objects.faultsOf.PutObject = [...faults];
    expect((await failure(commit({ path, ifNoneMatch: '*', body: 'mine', commitId: 'mine' }))).code).toBe(code);
    expect(await world.rawRecord(path)).toMatchObject({ timeout: { N: '0' }, generation: { N: '0' } });

    const before = world.clock.now();
    const foreign = new ObjectStoreWriter({ ...world, clock: world.clock });
    expect(await foreign.create(path, 'theirs')).toHaveProperty('etag');
    expect(world.clock.now() - before).toBeLessThan(1000);
  });

  it.each([
    ['MetadataTooLarge', 'PutObject', 'inline', 'metadata'],
    ['KeyTooLongError', 'PutObject', 'inline', 'path'],
    ['EntityTooLarge', 'CopyObject', 'copy', 'source'],
    ['MetadataTooLarge', 'CreateMultipartUpload', 'parts', 'metadata'],
  ])('%s of %s is for the caller to fix, and does not delay others', async (name, command, kind, field) => {
    const path = `caller/${name}/${command}`;
    const { commit, objects } = world.another();
    objects.faultsOf[command] = [{ name, status: 400 }];
    const refused = await failure(commit({ path, ifNoneMatch: '*', ...(await content(world, kind)) }));
    expect(refused).toMatchObject({ code: 'InvalidRequest', context: { issues: [{ path: field }] } });
    const record = await world.rawRecord(path);
    if (kind === 'parts') expect(record).toBeUndefined();
    else expect(record).toMatchObject({ timeout: { N: '0' } });
  });

  it('a staged upload that vanishes during the copy is NotFound, and does not block', async () => {
    const { commit, objects } = world.another();
    const source = await world.stage('mine');
    objects.faultsOf.CopyObject = [
      async (send) => {
        await world.rawDelete(`.holdfast/staging/${source}`);
        return send();
      },
    ];
    const missing = await failure(commit({ path: 'vanished', ifNoneMatch: '*', source }));
    expect(missing).toMatchObject({ code: 'NotFound', context: { source } });
    expect(await world.rawRecord('vanished')).toMatchObject({ timeout: { N: '0' } });
  });

  it('a failed take-over leaves the record, because the former writer may still land', async () => {
    const stalled = world.another();
    const { arrived, before, open } = gate();
    stalled.objects.faultsOf.PutObject = [before];
    const path = 'taken-over';
    const first = stalled.commit({ path, ifNoneMatch: '*', body: 'first', commitId: 'first' });
    await arrived;
    const failing = world.another();
    failing.objects.faultsOf.PutObject = [{ name: 'AccessDenied', status: 403 }];
    expect((await failure(failing.commit({ path, ifNoneMatch: '*', body: 'second' }))).code).toBe('Unavailable');
    expect(await world.rawRecord(path)).toMatchObject({ generation: { N: '1' }, timeout: { N: '20000' } });

    // A foreign writer overwrites without a condition, so it must wait until the first writer's object is there.
    world.clock.at(world.clock.now() + 5000, async () => {
      open();
      await first;
    });
    const foreign = new ObjectStoreWriter({ ...world, clock: world.clock });
    expect(await foreign.create(path, 'foreign')).toEqual({ error: 'AlreadyExists' });
    expect(await first).toMatchObject({ repeated: false });
    expect(await world.body(path)).toBe('first');
  });
});

describe('time', async () => {
  // Short, because the foreign writer polls every 100 ms while it waits.
  const world = await commitWorld({ commitTimeoutMs: 2000 });

  it.each(['ours', 'foreign'])(
    'a writer that stalled through a take-over does not overwrite a commit (%s)',
    async (taker) => {
      for (const create of [true, false]) {
        const path = `stalled/${taker}/${create}`;
        const etag = create ? undefined : (await world.commit({ path, ifNoneMatch: '*', body: 'before' })).etag;
        const condition = create ? { ifNoneMatch: '*' } : { ifMatch: etag };
        const stalled = world.another();
        const { arrived, before, open } = gate();
        stalled.objects.faultsOf.PutObject = [before];
        const late = failure(stalled.commit({ path, ...condition, body: 'late', commitId: 'late' }));
        await arrived;

        const foreign = new ObjectStoreWriter({ ...world, clock: world.clock });
        if (taker === 'ours') await world.commit({ path, ...condition, body: 'later' });
        else
          expect(await (etag ? foreign.update(path, 'later', etag) : foreign.create(path, 'later'))).toHaveProperty(
            'etag',
          );
        const { etag: current } = await world.read(path);
        open();
        const lost = await late;
        // After a foreign object only the answer of S3 can show that the write did not land.
        expect(lost).toMatchObject({ code: 'PreconditionFailed', context: { path, etag: current } });
        expect(await world.body(path)).toBe('later');
      }
    },
  );

  it.each([
    [2000, 0],
    [2001, 1],
  ])('a commit does not write with an expired record: after %d ms, generation %d', async (ms, generation) => {
    const { commit, objects, records } = world.another();
    records.faultsOf.PutItem = [(send) => send().finally(() => world.clock.advance(ms))];
    expect(await commit({ path: `late-${ms}`, ifNoneMatch: '*', body: 'mine' })).toMatchObject({ generation });
    expect(objects.sent.filter((command) => command === 'PutObject')).toHaveLength(1);
  });

  it('the SDK does not retry a commit after its record has expired', async () => {
    const { commit, objects } = world.another();
    objects.faultsOf.PutObject = [
      async () => {
        world.clock.advance(2001);
        throw Object.assign(new Error('reset'), { code: 'ECONNRESET' });
      },
    ];
    expect(await commit({ path: 'late-retry', ifNoneMatch: '*', body: 'mine' })).toMatchObject({ generation: 1 });
    expect(objects.sent.filter((command) => command === 'PutObject')).toHaveLength(2);
  });

  it.each([
    ['HeadObject', 'Unavailable'],
    ['PutItem', 'OutcomeUnknown'],
    ['PutObject', 'OutcomeUnknown'],
  ])('a commit ends with the invocation while %s hangs', async (command, code) => {
    const service = world.another();
    const controller = new AbortController();
    client(service, command).faultsOf[command] = [
      async () => {
        controller.abort();
        throw Object.assign(new Error('Request aborted'), { name: 'AbortError' });
      },
    ];
    const ended = await failure(
      service.commit({ path: `hang/${command}`, ifNoneMatch: '*', body: 'mine' }, call({ signal: controller.signal })),
    );
    expect(ended.code).toBe(code);
  });
});
