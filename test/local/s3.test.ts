import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { HeadObjectCommand, PutObjectCommand } from '@aws-sdk/client-s3';
import { expect, it } from 'vitest';
import { createBuckets, startS3 } from '../../local/s3.ts';
import { s3Client } from '../../shared/aws/s3.ts';

it('the S3 emulator keeps objects in DATA_DIR between runs, and their conditions', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'holdfast-s3-'));
  const object = { Bucket: 'kept', Key: 'a'.repeat(1000) };
  const create = new PutObjectCommand({ ...object, Body: 'one', Metadata: { a: 'b' }, IfNoneMatch: '*' });
  try {
    for (const expected of ['ok', 'PreconditionFailed']) {
      const emulator = await startS3(0, dataDir);
      const s3 = s3Client({ endpoint: emulator.endpoint });
      await createBuckets(emulator.endpoint, ['kept']);
      const outcome = await s3.send(create).then(
        () => 'ok',
        ({ name }) => name,
      );
      expect(outcome).toBe(expected);
      expect(await s3.send(new HeadObjectCommand(object))).toMatchObject({ Metadata: { a: 'b' }, ContentLength: 3 });
      s3.destroy();
      await emulator.stop();
    }
  } finally {
    await rm(dataDir, { recursive: true });
  }
});
