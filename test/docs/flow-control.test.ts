import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { Holdfast, isHoldfastError } from '../../client/src/index.ts';
import { ManualClock, MemoryService } from '../../client/src/testing.ts';
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
  /** What the example of the page calls. */
  names(work: Work): Record<string, unknown>;
  /** What a request receives that does not work. */
  otherwise?: string;
  /** When each request begins its work, in seconds, or what it receives instead. */
  expected: (number | string)[];
}

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
    ...{ heading: 'Once', file: 'once', otherwise: 'receives the result of 1' },
    names: (work) => ({ backup: work }),
    expected: [0, ...Array.from({ length: 4 }, () => 'receives the result of 1')],
  },
  {
    ...{ heading: 'Or not at all', file: 'skip', otherwise: 'skips its work' },
    names: (work) => ({ sync: work, isHoldfastError }),
    expected: [0, ...Array.from({ length: 4 }, () => 'skips its work')],
  },
];

/** Five requests at once, each by the example of the page, for as long as the picture shows. */
async function play({ heading, names, otherwise = '' }: Scene) {
  const [block = ''] = blocks(PAGE, heading, 'ts');
  const clock = new ManualClock();
  const { transport } = new MemoryService({ surroundings: clock });
  const begun = clock.monotonicMs;
  const now = () => Math.round((clock.monotonicMs - begun) / 100) / 10;
  const requests: Request[] = [];
  for (let no = 1; no <= 5; no++) {
    const request: Request = {};
    const timers = clock.timers.length;
    requests.push(request);
    const holdfast = new Holdfast({ transport, surroundings: clock, holder: `request ${no}` });
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
    runTypeScript(block, { holdfast, ...names(work) }).then(
      () => end(otherwise),
      (error) => end(error.code),
    );
    // The client loads a part at its first use, which takes time of the machine.
    await until(() => clock.timers.length > timers || request.ended !== undefined).toBe(true);
    await clock.advance(0);
  }
  const commands: Command[] = [];
  await clock.advance(SECONDS * 1000);
  return { requests, commands };
}

it.each(SCENES)('the picture $file of docs/flow-control.md shows what the example does', async (scene) => {
  const played = await play(scene);
  expect(played.requests.map(({ worked, ended }) => worked?.from ?? ended?.text)).toEqual(scene.expected);
  const [, title = ''] = new RegExp(`^!\\[(.*)\\]\\(pictures/flow-${scene.file}\\.svg\\)$`, 'm').exec(PAGE) ?? [];
  expect(title).not.toBe('');
  await expect(pictureOf({ title, ...played })).toMatchFileSnapshot(`../../docs/pictures/flow-${scene.file}.svg`);
});
