import { parentPort } from 'node:worker_threads';
import { freePort } from '../../local/ports.ts';
import { startS3 } from '../../local/s3.ts';

/** The S3 emulator in a thread of its own, so that it has a processor of its own. Tells where it listens. */
const { endpoint } = await startS3(await freePort());
parentPort?.postMessage(endpoint);
