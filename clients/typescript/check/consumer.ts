import { Holdfast, isHoldfastError, type Lease } from 'holdfast-client';

/** Compiles against the declarations as they are published, without those of Node, which a browser's program does not have. */
export async function nightly(endpoint: string, token: () => Promise<string>): Promise<string | null | undefined> {
  const holdfast = new Holdfast({ endpoint, token, holder: 'consumer' });
  try {
    const lease: Lease = await holdfast.acquire('nightly', { ttlSeconds: 5 });
    const released: boolean = await lease.release();
    const fence: number = await holdfast.withLease('nightly', (held) => held.fence);
    await holdfast.withLease('render', { limit: 5, weight: 2, mode: 'shared' }, () => {});
    // @ts-expect-error A permit of the mode exclusive has no limit.
    await holdfast.withLease('render', { limit: 5, mode: 'exclusive' }, () => {});
    // @ts-expect-error A leader has no limit of its wait.
    await holdfast.lead('render', { waitMs: 5, onElected: () => {} });
    for await (const { key, holder } of holdfast.leases({ state: 'held' })) console.log(key, holder, fence, released);
    const { outcome } = await holdfast.publish({ op: 'publishCommit', alias: 'books', address: 'a', t: 1 });
    return outcome;
  } catch (error) {
    if (isHoldfastError(error, 'LeaseHeld')) return error.holder;
    if (isHoldfastError(error, 'InvalidRequest')) return error.issues[0]?.path;
    if (isHoldfastError(error, 'LeaseLost') && error.reason === 'deadline') return error.key;
    throw error;
  }
}
