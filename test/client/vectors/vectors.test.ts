import { readFileSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import { python } from '../../support/programs/python.ts';
import { play } from './conductor.ts';
import type { Player } from './player.ts';
import { PythonPlayer } from './python.ts';
import type { Vectors } from './row.ts';
import { startService } from './service.ts';
import { TypeScriptPlayer } from './typescript.ts';

const vectors = JSON.parse(readFileSync('contract/vectors.json', 'utf8')) as Vectors;
const service = await startService();
const workers = [new PythonPlayer(python ?? '', 'sync'), new PythonPlayer(python ?? '', 'asyncio')] as const;
afterAll(async () => {
  for (const worker of workers) worker.stop();
  await service.stop();
});

function playAll(player: Player): void {
  for (const row of vectors.rows)
    it(row.name, async () => {
      expect(await play(row, player, vectors, service)).toEqual([]);
    });
}

describe('the TypeScript client', () => playAll(new TypeScriptPlayer()));

describe.skipIf(!python)('the Python client for threads', () => playAll(workers[0]));

describe.skipIf(!python)('the Python client for asyncio', () => playAll(workers[1]));
