import { describe, expect, it, vi } from 'vitest';
import { onceHandler } from '../../clients/typescript/src/handlers.ts';
import type { OnceRun } from '../../clients/typescript/src/index.ts';
import { FakeLambda, type Fault, type LambdaContext, untilAborted } from './fake-lambda.ts';

/** Loads the module that the client imports at its first slot: a manual clock does not wait for an import. */
await import('../../clients/typescript/src/once.ts');

interface Event {
  id?: string;
  body?: string;
}
type Work = (event: Event, context: LambdaContext, run: OnceRun | undefined) => unknown;
type Options = Partial<Parameters<typeof onceHandler<Event, string | undefined>>[0]>;

const handlerOf = ({ holdfast }: FakeLambda, options: Options, work: Work) =>
  onceHandler<Event, string | undefined>({ key: ({ id }) => id && `order/${id}`, ...options, holdfast } as Parameters<
    typeof onceHandler<Event, string | undefined>
  >[0])(work);

describe('onceHandler', () => {
  it('onceHandler runs the handler once, and answers a repeated event with the stored result', async () => {
    const lambda = new FakeLambda();
    let runs = 0;
    const handler = handlerOf(lambda, {}, ({ id }, context, run) => {
      runs++;
      return { id, name: context.functionName, key: run?.key, slot: run?.slot, fence: run?.fence, held: run?.held };
    });
    const answer = { id: '7', name: 'test', key: 'order/7', slot: '-', fence: 1, held: true };
    expect(await lambda.invoke(handler, { id: '7' })).toEqual({ value: answer });
    expect(await lambda.invoke(handler, { id: '7' })).toEqual({ value: answer });
    expect(await lambda.invoke(handler, { id: '8' })).toMatchObject({ value: { id: '8' } });
    expect(runs).toBe(2);
    expect(lambda.operations).toEqual(['onceBegin', 'onceComplete', 'onceBegin', 'onceBegin', 'onceComplete']);
    expect(lambda.clock.timers).toEqual([]);
  });

  it('onceHandler runs the handler without a slot if the event has no key', async () => {
    const lambda = new FakeLambda();
    expect(
      await lambda.invoke(
        handlerOf(lambda, {}, (_event, _context, run) => String(run)),
        {},
      ),
    ).toEqual({
      value: 'undefined',
    });
    expect(lambda.sent).toEqual([]);
  });

  it('onceHandler sends the slot, the hash of the input, and the execution', async () => {
    const lambda = new FakeLambda();
    const options = {
      ...{ slot: ({ id }: Event) => `slot-${id}`, inputHash: ({ body }: Event) => body, execution: () => 'arn' },
      ...{ keepSeconds: 600, holder: 'me' },
    };
    await lambda.invoke(
      handlerOf(lambda, options, () => {}),
      { id: '7', body: 'hash' },
    );
    expect(lambda.sent[0]?.payload).toEqual({
      ...{ key: 'order/7', slot: 'slot-7', inputHash: 'hash', execution: 'arn', keepSeconds: 600, holder: 'me' },
      ...{ ttlSeconds: 59, waitSeconds: 0, requestId: expect.any(String) },
    });
  });

  it('onceHandler throws LeaseHeld while another invocation works, so that the event comes again', async () => {
    const lambda = new FakeLambda();
    await lambda.holdfast.onceBegin({ key: 'order/7', holder: 'other' });
    const outcome = await lambda.invoke(
      handlerOf(lambda, {}, () => 'never'),
      { id: '7' },
    );
    expect(outcome).toMatchObject({ error: { code: 'LeaseHeld', holder: 'other' } });
  });

  it('onceHandler does not send a call if less than three seconds are left', async () => {
    const lambda = new FakeLambda();
    const outcome = await lambda.invoke(
      handlerOf(lambda, {}, () => 'never'),
      { id: '7' },
      2999,
    );
    expect(outcome).toMatchObject({ error: { code: 'LeaseHeld', message: '2999 ms are too little time for order/7' } });
    expect(lambda.sent).toEqual([]);
  });

  it('onceHandler stores a result that comes 900 ms before the invocation ends', async () => {
    const lambda = new FakeLambda();
    let charges = 0;
    const handler = handlerOf(lambda, {}, async () => {
      await lambda.sleep(29_100);
      return `receipt ${++charges}`;
    });
    expect(await lambda.invoke(handler, { id: '7' }, 30_000)).toEqual({ value: 'receipt 1' });
    expect(await lambda.invoke(handler, { id: '7' }, 30_000)).toEqual({ value: 'receipt 1' });
    expect(charges).toBe(1);
  });

  it('onceHandler aborts the signal a second before the end, and ignores the result', async () => {
    const lambda = new FakeLambda();
    const handler = handlerOf(lambda, {}, async (_event, _context, run) => {
      await untilAborted(run?.signal as AbortSignal).catch(() => {});
      return 'late';
    });
    const outcome = await lambda.invoke(handler, { id: '7' }, 30_000);
    expect(outcome).toMatchObject({ error: { code: 'LeaseLost', reason: 'maxHold' } });
    expect(lambda.operations).not.toContain('onceComplete');
    expect(lambda.operations.at(-1)).toBe('release');
    expect(
      await lambda.invoke(
        handlerOf(lambda, {}, () => 'ran'),
        { id: '7' },
      ),
    ).toEqual({ value: 'ran' });
  });

  it('onceHandler answers a repeated event with undefined if the result was not stored', async () => {
    const warn = vi.spyOn(console, 'warn').mockReturnValue();
    const lambda = new FakeLambda();
    const private_ = handlerOf(lambda, { key: 'a', result: false }, () => 'private');
    expect(await lambda.invoke(private_, {})).toEqual({ value: 'private' });
    expect(await lambda.invoke(private_, {})).toEqual({ value: undefined });
    expect(warn).not.toHaveBeenCalled();
    const large = handlerOf(lambda, { key: 'b' }, () => 'x'.repeat(5000));
    expect(await lambda.invoke(large, {})).toEqual({ value: 'x'.repeat(5000) });
    expect(warn).toHaveBeenCalledExactlyOnceWith(expect.stringContaining('the result for b is not stored'));
    expect(await lambda.invoke(large, {})).toEqual({ value: undefined });
    warn.mockRestore();
  });

  it.each(['answer lost', 'refused', 'late'] as const)(
    'onceHandler runs the handler once even if each first request is %s',
    async (fault: Fault) => {
      const lambda = new FakeLambda();
      const seen = new Set<string>();
      lambda.faultOf = (_at, operation) => {
        if (seen.has(operation)) return undefined;
        seen.add(operation);
        return fault;
      };
      let runs = 0;
      const handler = handlerOf(lambda, {}, () => ++runs);
      expect(await lambda.invoke(handler, { id: '7' })).toEqual({ value: 1 });
      expect(await lambda.invoke(handler, { id: '7' })).toEqual({ value: 1 });
      expect(lambda.clock.timers).toEqual([]);
    },
  );

  it('onceHandler leaves no timer and no grant if begin is never answered', async () => {
    const lambda = new FakeLambda();
    lambda.faultOf = (at) => (at < 2 ? 'answer lost' : undefined);
    const outcome = await lambda.invoke(
      handlerOf(lambda, { timeoutMs: 0 }, () => 'never'),
      { id: '7' },
    );
    expect(outcome).toMatchObject({ error: { code: 'Unreachable' } });
    expect(lambda.clock.timers).toEqual([]);
    expect(
      await lambda.invoke(
        handlerOf(lambda, {}, () => 'ran'),
        { id: '7' },
      ),
    ).toEqual({ value: 'ran' });
  });

  it('onceHandler throws OutcomeUnknown in time if the result may not be stored', async () => {
    const lambda = new FakeLambda();
    lambda.faultOf = (_at, operation) => (operation === 'onceComplete' ? 'answer lost' : undefined);
    const outcome = await lambda.invoke(
      handlerOf(lambda, {}, () => 'done'),
      { id: '7' },
      20_000,
    );
    expect(outcome).toMatchObject({ error: { code: 'OutcomeUnknown' } });
    expect(lambda.clock.timers).toEqual([]);
    expect(
      await lambda.invoke(
        handlerOf(lambda, {}, () => 'never'),
        { id: '7' },
      ),
    ).toEqual({ value: 'done' });
  });
});
