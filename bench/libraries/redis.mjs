// Locks on Redis, over one connection of ioredis: redlock-universal with `using`, which its documentation recommends, and the Mutex and the Semaphore
// of redis-semaphore. The Semaphore has one permit, and includes what was a fair semaphore before.
import Redis from 'ioredis';
import { Mutex, Semaphore, TimeoutError } from 'redis-semaphore';
import { createLock, IoredisAdapter, LockAcquisitionError } from 'redlock-universal';
import { serve } from '../contestants/scenarios.ts';

const [host, port] = process.env.SERVER.split(':');
const redis = new Redis({ host, port: Number(port) });
redis.on('error', () => {}); // ioredis connects again, and callers report calls that fail

/** A lock of redlock-universal keeps its connection, so a caller makes only one for each key. */
const kinds = {
  'redlock-universal': (key, ttl, locks) => {
    if (!locks.has(key)) locks.set(key, createLock({ adapter: new IoredisAdapter(redis), key, ttl }));
    return universal(locks.get(key));
  },
  Mutex: (key, ttl) => semaphore(new Mutex(redis, key, { lockTimeout: ttl, onLockLost: () => {} })),
  Semaphore: (key, ttl) => semaphore(new Semaphore(redis, key, 1, { lockTimeout: ttl, onLockLost: () => {} })),
};

await serve({
  caller: (ttlSeconds) => {
    const locks = new Map();
    return { acquire: (key) => untilAcquired(() => kinds[process.env.LOCK_KIND](key, ttlSeconds * 1000, locks)) };
  },
});

/** Both libraries stop waiting after a while, so a caller that wants to wait longer calls again. */
async function untilAcquired(acquire) {
  for (;;)
    try {
      return await acquire();
    } catch (error) {
      if (!isWaitOver(error)) throw error;
    }
}

function isWaitOver(error) {
  if (error instanceof TimeoutError) return true;
  return error instanceof LockAcquisitionError && error.cause?.message.includes('already held');
}

async function universal(lock) {
  const granted = Promise.withResolvers();
  const ending = Promise.withResolvers();
  const used = lock.using((signal) => {
    granted.resolve(signal);
    return ending.promise;
  });
  used.catch(granted.reject);
  const signal = await granted.promise;
  return {
    isHeld: () => !signal.aborted,
    release: () => {
      ending.resolve();
      return used;
    },
  };
}

async function semaphore(lock) {
  await lock.acquire();
  return { isHeld: () => lock.isAcquired, release: () => lock.release() };
}
