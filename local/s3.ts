import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { BucketAlreadyExists, BucketAlreadyOwnedByYou, CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { type BuildAppOptions, buildApp } from 'fauxqs';
// fauxqs exports neither its store nor its persistence, but takes a store. Its version is pinned.
import { S3Store } from '../node_modules/fauxqs/dist/s3/s3Store.js';
import { refuseWebPages } from './callers.ts';
import { type Emulator, refusedBy } from './emulator.ts';
import { listenAddress } from './listen.ts';
import { addConditions, type ObjectStore } from './s3-conditions.ts';
import { type ListingStore, listByBytes } from './s3-listing.ts';

/** The most bytes of one PUT, as in S3. The limit of the emulator is smaller than a part of a multipart upload may be. */
const MAX_BODY_BYTES = 5 * 1024 ** 3;

/**
 * Starts an S3 emulator in this process: fauxqs, with conditional writes, which it ignores, and with listings in the order that S3 uses.
 * @param dataDir the folder that keeps the objects between runs; undefined to keep them in memory
 */
export async function startS3(port: number, dataDir?: string): Promise<Emulator> {
  const s3Store = await objectStore(dataDir);
  const app = buildApp({ logger: false, stores: { s3Store } as unknown as NonNullable<BuildAppOptions['stores']> });
  // The parsers of the emulator would parse form data and queue messages, instead of storing an object of that content type.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: MAX_BODY_BYTES }, (_request, body, done) =>
    done(null, body),
  );
  takeAnyContentType(app);
  addConditions(app, s3Store);
  listByBytes(s3Store);
  app.addHook('onRequest', async ({ raw: request }, reply) => {
    if (refuseWebPages(request, reply.raw)) reply.hijack();
  });
  await app.listen({ port, host: listenAddress() });
  const { port: actual } = app.server.address() as AddressInfo;
  return {
    endpoint: `http://127.0.0.1:${actual}`,
    stop: async () => {
      await app.close();
      s3Store.persistence?.close();
    },
  };
}

/** Lets the emulator store any content type, as S3 does. Its framework refuses a body whose content type is not a media type. */
function takeAnyContentType(app: ReturnType<typeof buildApp>): void {
  const given = new WeakMap<object, string>();
  app.addHook('onRequest', (request, _reply, done) => {
    const { headers } = request.raw;
    if (headers['content-type'] !== undefined) {
      given.set(request, headers['content-type']);
      headers['content-type'] = 'application/octet-stream';
    }
    done();
  });
  app.addHook('preHandler', (request, _reply, done) => {
    const type = given.get(request);
    if (type !== undefined) request.raw.headers['content-type'] = type;
    done();
  });
}

interface Persistence {
  loadS3(store: ObjectStore): void;
  close(): void;
}

async function objectStore(
  dataDir: string | undefined,
): Promise<ObjectStore & ListingStore & { persistence?: Persistence }> {
  const store = new S3Store() as unknown as ObjectStore & ListingStore & { persistence?: Persistence };
  if (dataDir) {
    const { PersistenceManager } = await import('../node_modules/fauxqs/dist/persistence.js');
    const persistence = new PersistenceManager(join(dataDir, 's3')) as unknown as Persistence;
    // The store is loaded before it is attached. Otherwise each loaded bucket would be written again, and its objects dropped.
    persistence.loadS3(store);
    store.persistence = persistence;
  }
  return store;
}

/** Creates the buckets that do not exist yet. */
export async function createBuckets(endpoint: string, buckets: string[]): Promise<void> {
  const s3 = new S3Client({ endpoint, forcePathStyle: true, maxAttempts: 1 });
  for (const Bucket of buckets)
    try {
      await s3.send(new CreateBucketCommand({ Bucket }));
    } catch (error) {
      if (!(error instanceof BucketAlreadyOwnedByYou || error instanceof BucketAlreadyExists))
        refusedBy(endpoint, `CreateBucket of ${Bucket}`)(error as Error);
    }
  s3.destroy();
}
