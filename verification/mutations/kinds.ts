import { type Change, change, type Mutation } from './mutation.ts';

const shown = (name: string, [file, test]: [file: string, test: string], ...changes: Change[]): Mutation => ({
  ...{ name, changes, test: { file: `test/locks/${file}.test.ts`, name: test } },
});

/** Ways to break the exclusion between the two kinds of a key: each condition of docs/protocols/kinds.md. */
export const KINDS: Mutation[] = [
  shown(
    'a write on a pool lands on a lease',
    ['late-writes', 'a mark of a pool that arrives after the key became a lease marks no lease'],
    change('...conditionFields(all(isStillPool, condition), {', '...conditionFields(condition, {'),
  ),
  shown(
    'a write on a lease lands on a pool',
    ['late-writes', 'a mark of a lease that arrives after the key became a pool marks no pool'],
    change('...conditionFields(all(isLease, condition), more),', '...conditionFields(condition, more),'),
  ),
  shown(
    'a break of a lease takes the kind off a pool',
    ['late-writes', 'a break by the fence of the last grant leaves the record a pool'],
    change('all(isLease, hasFence(fence), isHeld, isUnmarked)', 'all(hasFence(fence), isHeld, isUnmarked)'),
  ),
  shown(
    'a first try lands on a pool that formed since',
    ['late-writes', 'a permit of a late try is granted in no pool that formed since'],
    change(
      'seen ? isSamePool(seen) : formedBefore(now - dependencies.clockSkewMs)',
      'seen ? isSamePool(seen) : hasUsed',
    ),
  ),
  shown(
    'a write after a look lands on a pool that formed since',
    ['late-writes', 'a permit of a write after a look is granted in no pool that formed since'],
    change(
      'seen ? isSamePool(seen) : formedBefore(now - dependencies.clockSkewMs)',
      'seen ? hasUsed : formedBefore(now - dependencies.clockSkewMs)',
    ),
  ),
  shown(
    'a key becomes a pool over the free lease of a later grant',
    [
      'late-writes',
      'a write that makes a key a pool arrives after another lease has come and gone, and the fences rise',
    ],
    change(
      "as('fence', over.fence), as('lease_version', over.lease_version)",
      "as('lease_version', over.lease_version)",
    ),
  ),
  shown(
    'a key becomes a pool over a lease that its holder has extended',
    [
      'late-writes',
      'a write that makes a key a pool arrives after the holder has extended its expired lease, and is refused',
    ],
    change("as('fence', over.fence), as('lease_version', over.lease_version)", "as('fence', over.fence)"),
  ),
  shown(
    'a key becomes a pool over the mark of a line',
    [
      'late-writes',
      'a write that makes a key a pool arrives after a call has marked the lease, and the line is handed off first',
    ],
    change("all(isUnmarked, as('fence', over.fence),", "all(as('fence', over.fence),"),
  ),
  shown(
    'a pool with a holder becomes a lease',
    ['late-writes', 'a write that makes a key a lease again arrives after a permit was granted, and is refused'],
    change(
      "aliased('#used = :zero AND #fence = :fence', { ':zero': integer(0), ':fence': integer(fence) })",
      "aliased('#fence >= :fence', { ':fence': integer(fence) })",
    ),
  ),
  shown(
    'a pool becomes a lease with a fence lower than that of its last permit',
    [
      'late-writes',
      'a write that makes a key a lease again arrives after another permit has come and gone, and the fences rise',
    ],
    change(
      "aliased('#used = :zero AND #fence = :fence', { ':zero': integer(0), ':fence': integer(fence) })",
      "aliased('#used = :zero AND #fence >= :fence', { ':zero': integer(0), ':fence': integer(fence) })",
    ),
  ),
  shown(
    'a pool with a line becomes a lease',
    [
      'late-writes',
      'a write that makes a key a lease again arrives after a call has marked the pool, and the mark is handed off first',
    ],
    change("        isUnmarked,\n        aliased('#used = :zero", "        aliased('#used = :zero"),
  ),
  shown(
    'a lease becomes a pool within the margin of the clocks',
    ['kinds', 'a key may be taken from its last holder only after the margin of the clocks'],
    change('if (!canBeHad(record, dependencies))', 'if (!canBeHad(record, { ...dependencies, clockSkewMs: 0 }))'),
  ),
  shown(
    'a pool becomes a lease within the margin of the clocks',
    ['kinds', 'a key may be taken from its last holder only after the margin of the clocks'],
    change('takeoverAt(entry, clockSkewMs) <= clock.now());', 'takeoverAt(entry, 0) <= clock.now());'),
  ),
  shown(
    'a lease becomes a pool before its line is handed off',
    [
      'kinds',
      'a free key serves its line first: the waiter of a lease receives it, and the call for a permit is refused',
    ],
    change(
      'if (record.waiters !== undefined || (isLeased(record) &&',
      'if (record.waiters === null || (isLeased(record) &&',
      'shared/locks/change-kind.ts',
    ),
  ),
  shown(
    'a pool becomes a lease before its line is handed off',
    ['kinds', 'a free key serves the line of a pool first'],
    change(
      'if (record.waiters !== undefined) {\n      const handed = await handOffPool',
      'if (record.waiters === null) {\n      const handed = await handOffPool',
    ),
  ),
  shown(
    'a task of the other kind waits while the key is held',
    ['kinds', 'a task for a lease fails with WrongKind while the key is held as the other kind'],
    change('if (others.length === 0) return false;', 'if (others.length >= 0) return false;'),
  ),
];
