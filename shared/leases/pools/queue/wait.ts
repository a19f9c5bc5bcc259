import { GetItemCommand } from '@aws-sdk/client-dynamodb';
import type { Call } from '../../../aws/call.ts';
import { all } from '../../../aws/condition.ts';
import { reading, send } from '../../../aws/send.ts';
import { HoldfastError } from '../../../errors.ts';
import { refuseWhereLong, takePlace } from '../../queue/join.ts';
import { pauseMs } from '../../queue/pace.ts';
import { deleteTicket, getTicket, isTask, lineOf } from '../../queue/tickets.ts';
import { readPlace } from '../../queue/waiting.ts';
import { hasNoEntry, isNotRemembered, isUnmarked } from '../conditions.ts';
import type { PoolDependencies } from '../dependencies.ts';
import { readPool } from '../read.ts';
import { ending, entryOf, keyOf, type PoolRecord, parsePool } from '../record.ts';
import type { Granted, PermitRequest } from '../request.ts';
import { roomAt, toEnd } from '../room.ts';
import { permitLost, poolHeld } from '../views.ts';
import { advance } from './advance.ts';
import { repeatFromLine } from './claim.ts';
import { raiseMark } from './mark.ts';

/** How often a call looks at its own ticket. */
const ROW_EVERY_MS = 1000;

/** Where there is room and nobody has given it to the line, a call waits so long, with jitter, before it does. */
const PATIENCE_MS = [50, 500] as const;

export interface Joining {
  request: PermitRequest;
  /** The place that it had before, if it asks again. */
  ticket?: string | undefined;
  /** When it stops waiting, in epoch milliseconds. */
  deadline: number;
}

/**
 * A call that waits in line for a permit, until it has one or its patience ends (docs/protocols/pools.md#wait).
 * @throws HoldfastError LeaseHeld, LeaseLost, QueueFull, Throttled, Unavailable, OutcomeUnknown
 */
export async function waitInPool(dependencies: PoolDependencies, joining: Joining, call: Call): Promise<Granted> {
  const waiting = new Waiting(dependencies, joining, call);
  await waiting.join(joining.ticket);
  return waiting.untilGranted();
}

class Waiting {
  readonly #dependencies: PoolDependencies;
  readonly #request: PermitRequest;
  readonly #deadline: number;
  readonly #call: Call;
  #ticket = '';
  #record: PoolRecord;
  /** When it last looked at its own ticket. */
  #checkedAt = 0;
  /** Since when there has been room that nobody gave to the line, and how long it waits for others to do so. */
  #roomSince: number | undefined;
  #patienceMs = 0;

  constructor(dependencies: PoolDependencies, { request, deadline }: Joining, call: Call) {
    this.#dependencies = dependencies;
    this.#request = request;
    this.#deadline = deadline;
    this.#call = call;
    this.#record = parsePool(request.key);
  }

  /** The ticket first, then the mark. @param before the place that the call had before */
  async join(before: string | undefined): Promise<void> {
    const { key, holder, ttlMs, requestId, principal, data, execution, target, limit, weight, name } = this.#request;
    const permit = { limit, weight };
    const terms = { data, execution, target, permit };
    const asked = { key: lineOf(key), holder, ttlSeconds: ttlMs / 1000, requestId, principal, ...terms };
    const placing = { asked, ticket: before, deadline: this.#deadline };
    const { ticket, again } = await takePlace(this.#dependencies, placing, this.#call);
    const condition = all(hasNoEntry(name, 0), isNotRemembered(name));
    const { won, standing } = await raiseMark(this.#dependencies, { key, condition, ticket }, this.#call);
    this.#ticket = ticket;
    this.#record = standing;
    this.#checkedAt = this.#now;
    if (!won) return;
    const arrivals = Number(standing.waiters?.N);
    // One that has its place already is not put out of the line.
    if (!again) await refuseWhereLong(this.#dependencies, { ...this.#name, arrivals }, this.#call);
    // A permit may have ended before the mark was there.
    if (this.#hasRoom) await this.#advance();
  }

  async untilGranted(): Promise<Granted> {
    for (;;) {
      const granted = await this.#ownGrant();
      if (granted) return granted;
      if (this.#now >= this.#deadline) return this.#leave();
      if (await this.#markOrAdvance()) continue;
      await this.#pauseAndLook();
    }
  }

  get #now(): number {
    return this.#dependencies.clock.now();
  }

  get #name() {
    return { key: lineOf(this.#request.key), ticket: this.#ticket };
  }

  /** Whether it would fit, if nobody were before it. */
  get #hasRoom(): boolean {
    const { clockSkewMs } = this.#dependencies;
    return toEnd(this.#record, this.#request, { now: this.#now, clockSkewMs }) !== undefined;
  }

  /** @throws HoldfastError LeaseLost if its permit has ended, or it was withdrawn */
  async #ownGrant(): Promise<Granted | undefined> {
    const { key, name } = this.#request;
    const own = entryOf(this.#record, name);
    if (own) {
      const claiming = { request: this.#request, standing: this.#record, own, ticket: this.#ticket };
      const granted = await repeatFromLine(this.#dependencies, claiming, this.#call);
      if (!granted) this.#record = await readPool(this.#dependencies, key, this.#call);
      return granted;
    }
    const how = ending(this.#record, name);
    if (!how) return undefined;
    const isCancelled = await this.#isWithdrawn();
    await deleteTicket(this.#dependencies, this.#name, this.#call);
    throw permitLost(key, isCancelled ? 'cancelled' : how);
  }

  async #isWithdrawn(): Promise<boolean | 'gone'> {
    const row = await getTicket(this.#dependencies, this.#name, this.#call);
    return row && !isTask(row) ? row.cancelledAt !== undefined : 'gone';
  }

  /** @returns whether what is seen now must be judged at once */
  async #markOrAdvance(): Promise<boolean> {
    const { key, name } = this.#request;
    if (this.#record.waiters === undefined) {
      const condition = all(hasNoEntry(name, 0), isUnmarked);
      const raising = { key, condition, ticket: this.#ticket };
      const { won, standing } = await raiseMark(this.#dependencies, raising, this.#call);
      this.#record = standing;
      // The line was seen empty, so perhaps its own place is gone.
      if (won) this.#checkedAt = Number.NEGATIVE_INFINITY;
      return true;
    }
    if (!this.#hasRoom) {
      this.#roomSince = undefined;
      return false;
    }
    if (this.#record.nextTicket !== this.#ticket && !this.#mayAdvance()) return false;
    this.#roomSince = undefined;
    await this.#advance();
    return entryOf(this.#record, name) !== undefined;
  }

  /** The next in line does it at once. */
  #mayAdvance(): boolean {
    if (this.#roomSince === undefined) {
      const [least, most] = PATIENCE_MS;
      this.#roomSince = this.#now;
      this.#patienceMs = least + (most - least) * this.#dependencies.ids.random();
    }
    return this.#now - this.#roomSince >= this.#patienceMs;
  }

  async #advance(): Promise<void> {
    const { standing } = await advance(this.#dependencies, { record: this.#record }, this.#call);
    this.#record = standing;
  }

  async #pauseAndLook(): Promise<void> {
    const { clock, ids, clockSkewMs, dynamodb, poolsTable } = this.#dependencies;
    const { key } = this.#request;
    const toRoomMs = roomAt(this.#record, this.#request, clockSkewMs) - this.#now;
    const sight = { record: { key, nextTicket: this.#record.nextTicket }, ticket: this.#ticket, arrival: undefined };
    const pause = pauseMs({ ...sight, now: this.#now, toTakeoverMs: toRoomMs }, ids);
    await clock.sleep(Math.max(1, Math.min(pause, this.#deadline - this.#now)));
    const command = new GetItemCommand({ TableName: poolsTable, Key: keyOf(key) });
    const { Item: item } = await send(dynamodb, { command, operation: reading(`table ${poolsTable}`) }, this.#call);
    this.#record = parsePool(key, item);
    if (this.#now - this.#checkedAt >= ROW_EVERY_MS) await this.#checkRow();
  }

  async #checkRow(): Promise<void> {
    const { key, name } = this.#request;
    this.#checkedAt = this.#now;
    const isWithdrawn = await this.#isWithdrawn();
    if (isWithdrawn === 'gone') {
      // Its window has gone by, or it is about to be answered by its grant.
      this.#record = await readPool(this.#dependencies, key, this.#call);
      if (!entryOf(this.#record, name)) await this.join(undefined);
    } else if (isWithdrawn) {
      await deleteTicket(this.#dependencies, this.#name, this.#call);
      throw permitLost(key, 'cancelled');
    }
  }

  /** Its place stays for a while, for the call that asks again. @throws HoldfastError LeaseHeld, with the place; LeaseLost */
  async #leave(): Promise<Granted> {
    const { key, name, requestId } = this.#request;
    await this.#checkRowOnLeaving();
    this.#record = await readPool(this.#dependencies, key, this.#call);
    // A call that leaves takes nobody's turn along.
    if (this.#record.waiters !== undefined && !entryOf(this.#record, name)) await this.#advance();
    const granted = await this.#ownGrant();
    if (granted) return granted;
    const { clockSkewMs } = this.#dependencies;
    const { code, message, context } = poolHeld(this.#record, { asked: this.#request, now: this.#now, clockSkewMs });
    const place = await readPlace(
      this.#dependencies,
      { record: { key: lineOf(key) }, ticket: this.#ticket },
      this.#call,
    );
    const retryWith = { requestId, ticket: this.#ticket };
    throw new HoldfastError(code, message, { ...context, ...place, retryWith });
  }

  async #checkRowOnLeaving(): Promise<void> {
    if ((await this.#isWithdrawn()) !== true) return;
    await deleteTicket(this.#dependencies, this.#name, this.#call);
    throw permitLost(this.#request.key, 'cancelled');
  }
}
