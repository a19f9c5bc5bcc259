import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { leased } from '../../clients/typescript/src/handlers.ts';
import { Holdfast, isHoldfastError } from '../../clients/typescript/src/index.ts';
import { ManualClock, MemoryService } from '../../clients/typescript/src/testing.ts';
import { type Command, pictureOf, type Request } from '../support/programs/flow-picture.ts';
import { blocks, runTypeScript } from '../support/programs/guides.ts';
import { until } from '../support/time/until.ts';

const PAGE = await readFile('docs/flow-control.md', 'utf8');
const WORK_MS = 10_000;
const SECONDS = 50;

type Work = (signal?: AbortSignal) => Promise<string>;

interface Scene {
  heading: string;
  /** The picture without its ending. */
  file: string;
  /** The variables that the example uses. */
  names(work: Work): Record<string, unknown>;
  /** The answer to a request that does not work. */
  otherwise?: string;
  /** The example, if it is not the first one under the heading. */
  example?: string;
  /** What an operator does while the requests run. */
  commands?: (Command & { block: string })[];
  /** When each request begins its work, in seconds, or what it receives instead. */
  expected: (number | string)[];
}

const [LIMIT = ''] = blocks(PAGE, 'At most N at once', 'ts');
const [REPLACE = ''] = blocks(PAGE, 'Only the newest', 'ts');
const [PAUSE = ''] = blocks(PAGE, 'Less for now, or nothing', 'ts');
const [NEXT = ''] = blocks(PAGE, 'This one next', 'ts');
const RESULT = 'receives the result of 1';
const SKIPPED = 'skips its work';

const SCENES: Scene[] = [
  {
    ...{ heading: 'At most N at once', file: 'limit', expected: [0, 0, 10, 10, 20] },
    names: (work) => ({ render: work }),
  },
  {
    ...{ heading: 'At most N starts in a period', file: 'rate', expected: [0, 5, 10, 15, 20] },
    names: (work) => ({ ask: () => work(), prompt: '' }),
  },
  {
    ...{ heading: 'Once', file: 'once', expected: [0, RESULT, RESULT, RESULT, RESULT], otherwise: RESULT },
    names: (work) => ({ backup: work }),
  },
  {
    ...{
      heading: 'Or not at all',
      file: 'skip',
      expected: [0, SKIPPED, SKIPPED, SKIPPED, SKIPPED],
      otherwise: SKIPPED,
    },
    names: (work) => ({ sync: work, leased }),
  },
  {
    ...{ heading: 'Only the newest', file: 'replace' },
    names: (work) => ({ build: work, pr: 12 }),
    expected: [0, 'superseded by 3', 'superseded by 4', 'superseded by 5', 10],
  },
  {
    ...{ heading: 'Only the newest', file: 'replace-running' },
    example: REPLACE.replace("'waiting'", "'running', ttlSeconds: 15"),
    names: (work) => ({ build: work, pr: 12 }),
    expected: [0, 'superseded by 3', 'superseded by 4', 'superseded by 5', 4.5],
  },
  {
    ...{ heading: 'Less for now, or nothing', file: 'cap', example: LIMIT, expected: [0, 0, 25, 25, 35] },
    names: (work) => ({ render: work }),
    commands: [
      { at: 5, text: 'pause', block: PAUSE },
      { at: 25, text: 'lift', block: "await holdfast.cap({ key: 'render', limit: null })" },
    ],
  },
  {
    ...{ heading: 'This one next', file: 'next', example: LIMIT, expected: [0, 0, 10, 20, 10] },
    names: (work) => ({ render: work }),
    commands: [{ at: 5, text: 'next: 5', block: NEXT }],
  },
];

/** The text of the picture for an error that a request received. */
const refusal = (error: unknown) => {
  if (isHoldfastError(error, 'Superseded')) return `superseded by ${error.by.replace('request ', '')}`;
  return isHoldfastError(error) ? error.code : String(error);
};

/** Five requests at once, each by the example of the page, for as long as the picture shows. */
async function play({ heading, names, otherwise = '', commands = [], example }: Scene) {
  const [block = ''] = example ? [example] : blocks(PAGE, heading, 'ts');
  const clock = new ManualClock();
  const { transport } = new MemoryService({ surroundings: clock });
  const begun = clock.monotonicMs;
  const now = () => Math.round((clock.monotonicMs - begun) / 100) / 10;
  const clientOf = (holder: string) => new Holdfast({ transport, surroundings: clock, holder });
  const requests: Request[] = [];
  for (let no = 1; no <= 5; no++) {
    const request: Request = {};
    const timers = clock.timers.length;
    requests.push(request);
    const work: Work = async (signal) => {
      const from = now();
      await new Promise<void>((resolve) => {
        clock.after(WORK_MS, resolve);
        signal?.addEventListener('abort', () => resolve());
      });
      request.worked = { from, to: now() };
      return 'the result';
    };
    const end = (text: string) => {
      if (!request.worked) request.ended = { at: now(), text };
    };
    const run = async () => {
      const handler = await runTypeScript(block, { holdfast: clientOf(`request ${no}`), ...names(work) });
      return typeof handler === 'function' ? handler({}, { getRemainingTimeInMillis: () => 30_000 }) : handler;
    };
    run().then(
      () => end(otherwise),
      (error) => end(refusal(error)),
    );
    // The client loads a part at its first use, which takes time of the machine.
    await until(() => clock.timers.length > timers || request.ended !== undefined).toBe(true);
    await clock.advance(0);
  }
  for (const { at, block: command } of commands) {
    await clock.advance((at - now()) * 1000);
    await runTypeScript(command, { holdfast: clientOf('operator') });
  }
  await clock.advance((SECONDS - now()) * 1000);
  return { requests, commands };
}

it.each(SCENES)('the picture $file of docs/flow-control.md shows what the example does', async (scene) => {
  const played = await play(scene);
  expect(played.requests.map(({ worked, ended }) => worked?.from ?? ended?.text)).toEqual(scene.expected);
  const [, title = ''] = new RegExp(`^!\\[(.*)\\]\\(pictures/flow-${scene.file}\\.svg\\)$`, 'm').exec(PAGE) ?? [];
  expect(title).not.toBe('');
  await expect(pictureOf({ title, ...played })).toMatchFileSnapshot(`../../docs/pictures/flow-${scene.file}.svg`);
});
