import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundle } from '../build/bundle.ts';
import type { HandoffTask } from './leases.handoff.ts';
import type { OverheadResult, OverheadTask } from './leases.overhead.ts';
import type { ParkedResult, ParkedTask } from './leases.parked.ts';
import { type Figure, type Measurement, type Options, percentile, ratio } from './measurement.ts';
import { inWorker } from './worker.ts';

const overhead: Measurement = {
  name: 'overhead',
  title: 'Acquire and release, through the built functions and by the bare SDK',
  method:
    'API Gateway events into dist/, and a bundle of the SDK alone sending the same PutItem and UpdateItem; one process, one emulator, blocks of ten pairs in random order',
  run: async (options) => {
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-bare-'));
    try {
      await bundle(new URL('bare-sdk.ts', import.meta.url).pathname, folder);
      const task: OverheadTask = { bareSdk: join(folder, 'index.mjs'), samples: options.quick ? 1000 : 6000 };
      const script = new URL('leases.overhead.ts', import.meta.url);
      return overheadFigures(await inWorker<OverheadTask, OverheadResult>(script, task, options));
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
};

function overheadFigures({ built, bare }: OverheadResult): Figure[] {
  return (['acquire', 'release'] as const).flatMap((call) => {
    const at = (fraction: number) => [percentile(built[call], fraction), percentile(bare[call], fraction)] as const;
    const [p50, bareP50] = at(0.5);
    const [p99, bareP99] = at(0.99);
    return [
      { what: `${call} p50, built / bare`, value: `${ms(p50)} / ${ms(bareP50)}` },
      { what: `${call} p99, built / bare`, value: `${ms(p99)} / ${ms(bareP99)}` },
      ratio(`${call} p50 ratio`, p50 / bareP50, 1.25),
      ratio(`${call} p99 ratio`, p99 / bareP99),
    ];
  });
}

const ms = (value: number) => `${value.toFixed(2)} ms`;

const handoff: Measurement = {
  name: 'handoff',
  title: 'Hand-off: from sending the release to the grant, for a caller that has waited three seconds',
  method: 'built functions; up to twenty keys at a time, each with one holder and one waiter of its own',
  run: async (options: Options) => {
    const task: HandoffTask = { repetitions: options.quick ? 20 : 100, atATime: 20 };
    const waits = await inWorker<HandoffTask, number[]>(new URL('leases.handoff.ts', import.meta.url), task, options);
    const p50 = percentile(waits, 0.5);
    return [
      { what: 'p50', value: `${p50.toFixed(0)} ms`, bar: { measured: p50, most: 150 } },
      { what: 'p99', value: `${percentile(waits, 0.99).toFixed(0)} ms` },
      { what: 'repetitions', value: String(waits.length) },
    ];
  },
};

const parked: Measurement = {
  name: 'parked',
  title: 'Hand-off to a parked task: from sending the release to the arrival of SendTaskSuccess',
  method:
    'built functions, emulator of DynamoDB and a double of Step Functions on this machine; requests are counted in the SDK. A parked acquire is one Task state, and so one state transition, however long it waits; a poll is one for each look',
  run: async (options: Options) => {
    const task: ParkedTask = { repetitions: options.quick ? 50 : 500 };
    const script = new URL('leases.parked.ts', import.meta.url);
    const { first, waits, requests, transitions } = await inWorker<ParkedTask, ParkedResult>(script, task, options);
    const p99 = percentile(waits, 0.99);
    return [
      { what: 'p50', value: `${percentile(waits, 0.5).toFixed(1)} ms` },
      { what: 'p99', value: `${p99.toFixed(1)} ms`, bar: { measured: p99, most: 100 } },
      { what: 'the first of a process, which loads the queue', value: `${first.toFixed(0)} ms` },
      { what: 'DynamoDB requests of a release with one parked', value: requests.join(', ') },
      { what: 'requests to Step Functions for each parked acquire', value: String(transitions) },
      { what: 'repetitions', value: String(waits.length) },
    ];
  },
};

export const leaseMeasurements: Measurement[] = [overhead, handoff, parked];
