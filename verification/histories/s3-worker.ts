import { parentPort } from 'node:worker_threads';
import { freePort } from '../../local/ports.ts';
import { startS3 } from '../../local/s3.ts';

/** Runs the S3 emulator in another thread, on another processor, and posts its address. */
const { endpoint } = await startS3(await freePort());
parentPort?.postMessage(endpoint);
