import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { BucketAlreadyExists, BucketAlreadyOwnedByYou, CreateBucketCommand, S3Client } from '@aws-sdk/client-s3';
import { type BuildAppOptions, buildApp } from 'fauxqs';
// fauxqs exports neither its store nor its persistence, but takes a store. Its version is pinned.
import { S3Store } from '../node_modules/fauxqs/dist/s3/s3Store.js';
import { refuseForeign } from './callers.ts';
import { type Emulator, refusedBy } from './emulator.ts';
import { listenAddress } from './listen.ts';
import { addConditions, type ObjectStore } from './s3-conditions.ts';
import { type ListingStore, listByBytes } from './s3-listing.ts';

/** S3 takes five gibibytes in one PUT. The emulator's own limit is smaller than a part of a multipart upload may be. */
const MAX_BODY_BYTES = 5 * 1024 ** 3;

/**
 * An S3 emulator in this process: fauxqs, with the conditional writes that it ignores, and with listings in S3's order.
 * @param dataDir where objects are kept between runs; in memory when undefined
 */
export async function startS3(port: number, dataDir?: string): Promise<Emulator> {
  const s3Store = await objectStore(dataDir);
  const app = buildApp({ logger: false, stores: { s3Store } as unknown as NonNullable<BuildAppOptions['stores']> });
  // Its own parsers take form data and queue messages apart before an object of that content type is stored.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer', bodyLimit: MAX_BODY_BYTES }, (_request, body, done) =>
    done(null, body),
  );
  takeAnyContentType(app);
  addConditions(app, s3Store);
  listByBytes(s3Store);
  app.addHook('onRequest', async ({ raw: request }, reply) => {
    if (refuseForeign(request, reply.raw)) reply.hijack();
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

/** S3 stores whatever a content type says; the emulator's framework refuses to read a body whose type is no media type. */
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
    // Loaded before it is attached: otherwise each loaded bucket would be written again and its objects dropped.
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
