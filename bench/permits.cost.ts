import { compare, overheadFigures } from './leases.ts';
import { type Figure, type Measurement, median, type Options } from './measurement.ts';
import type { UnitsResult, UnitsTask } from './permits.units.ts';
import { inWorker } from './worker.ts';

const LIMIT = 8;
const HOLDERS = [1, 10, 100, 200];

/** The bar: an acquire is one conditional write, and so is a release. */
const MAX_REQUESTS = 2;
/** The bar for the time of the domain functions, divided by that of the bare SDK. */
const MAX_TO_BARE = { domain: 1.15 };

const cost: Measurement = {
  name: 'permitcost',
  title: 'Permits: what the service adds to the bare SDK, and the write units of a call by the number of holders',
  method:
    'As for `overhead`, with the same two UpdateItems for the first of eight permits of a key. The emulator reports requests and units, for holders with names of ten letters and without data',
  run: async (options) => {
    const compared = { bareSdk: 'bare-permits.ts', domain: 'locks.domain.ts', terms: { limit: LIMIT } };
    return [
      ...overheadFigures(await compare(options, compared), { middle: median, max: MAX_TO_BARE }),
      ...(await unitsFigures(options)),
    ];
  },
};

async function unitsFigures(options: Options): Promise<Figure[]> {
  const task = { dynamodbEndpoint: options.dynamodbEndpoint, holders: HOLDERS };
  const script = new URL('permits.units.ts', import.meta.url);
  const { requests, units } = await inWorker<UnitsTask, UnitsResult>(script, task, options);
  return [
    {
      ...{ what: 'requests of an acquire and a release without contention', value: String(requests), n: 1 },
      ...{ median: requests, unit: 'requests', bar: { measured: requests, max: MAX_REQUESTS } },
    },
    ...units.map(({ holders, ...ofCalls }) => {
      const most = Math.max(...Object.values(ofCalls));
      const isSame = Object.values(ofCalls).every((writeUnits) => writeUnits === most);
      const each = Object.entries(ofCalls).map(([call, writeUnits]) => `${call} ${writeUnits}`);
      return {
        ...{
          what: `write units of an acquire, heartbeat, release or refusal, holders: ${holders}`,
          n: 1,
        },
        ...{ value: isSame ? String(most) : each.join(', '), median: most, unit: 'write units' },
      };
    }),
  ];
}

export const permitCostMeasurements: Measurement[] = [cost];
