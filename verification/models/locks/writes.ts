import { joined, replaces } from './latest.ts';
import {
  ALL,
  BARE,
  type End,
  type Entry,
  entryOf,
  FAR,
  game,
  holders,
  isThird,
  limitOf,
  type Op,
  type Rec,
  remembers,
  weightOf,
  without,
} from './state.ts';

// Every conditional write of docs/protocols/locks.md on the record of a key. `without` switches one rule off.

const byName = (entries: Entry[]) => entries.toSorted((a, b) => (a.n < b.n ? -1 : 1));
const remember = (r: Rec, names: string[]): string[] =>
  [...names, ...r.ring.filter((n) => !names.includes(n))].slice(0, game.ring);
export const isRemembered = ({ how }: Pick<End, 'how'>): boolean => how === 'released' || how === 'broken';

/** The record with an entry in its place. */
export const put = (r: Rec, e: Entry): Rec =>
  e.w === ALL ? { ...r, h: e } : { ...r, shared: byName([...r.shared.filter(({ n }) => n !== e.n), e]) };
/** The record after a write on an expiry. The expiry of an exclusive holder is also that of the record, which other clients compare. */
const expiring = (r: Rec, e: Entry): Rec => ({ ...put(r, e), lx: e.w === ALL ? e.x : r.lx });

/** The record without these entries. The entry of an exclusive holder stays, and names its request if the request must not be granted again. */
function drop(r: Rec, ended: readonly End[]): Rec {
  const endOf = (e: Entry) => ended.find(({ n }) => n === e.n);
  const last = r.h?.i ? endOf(r.h) : undefined;
  const forgets = last && !isRemembered(last) && !without('end: forgets');
  const h = r.h && last ? { ...r.h, i: 0, v: 0, s: false, n: forgets ? '' : r.h.n } : r.h;
  return { ...r, h, shared: r.shared.filter((e) => !endOf(e)) };
}

export const entry = (o: Pick<Entry, 'n' | 'i' | 'v' | 'w' | 'x'>, f: number, more: Partial<Entry> = {}): Entry => ({
  ...{ n: o.n, i: o.i, v: o.v, w: o.w, x: o.x, f },
  ...{ k: 0, c: false, s: false, nf: false, j: 0, low: false },
  ...more,
});

const still = (r: Rec, ended: readonly End[], rule: string): boolean =>
  ended.every(({ n, i, v }) => {
    const e = entryOf(r, n);
    return e?.i === i && (e.v === v || without(rule));
  });

/** What a grant to these parties requires of the cap, by the record that the call has read. A cap of `cover` or more changes nothing. */
export function capTerms(r: Rec | null, parties: number[]): Pick<Op, string> {
  if (!game.mix.caps) return {};
  const cover = Math.max(...parties.map(limitOf));
  const binds = r?.cap && r.cap.m < cover;
  return { cover, ...(binds && { capAt: r.capAt, capM: r.cap?.m }), hasRead: r !== null };
}

/** Whether the cap leaves the grants the room that was computed for them. */
function isUnderCap(r: Rec, o: Op, rule: string): boolean {
  if (o.cover === undefined || without(rule)) return true;
  if (o.capAt === undefined) return !r.cap || r.cap.m >= o.cover;
  return without('cap: names the command') ? r.cap?.m === o.capM : r.capAt === o.capAt;
}

type Write = (r: Rec, o: Op) => Rec | undefined;

/** The condition that all first tries and take-overs share. */
const mayTry = (r: Rec, { n, at }: Op): boolean =>
  (r.mark === null || without('acquire: no mark')) &&
  (!remembers(r, n) || without('acquire: not remembered')) &&
  (r.freed <= at || without('acquire: freed')) &&
  !(r.latest && replaces(n));

function acquire(r: Rec, o: Op): Rec | undefined {
  const cut = without('margin') ? 0 : -1;
  const isFree = r.used === 0 || (r.used === null && (r.lv === null || r.lx <= cut || without('third party')));
  if (!mayTry(r, o) || !isUnderCap(r, o, o.hasRead ? 'cap: take-over' : 'cap: first try')) return undefined;
  if (o.w === ALL) {
    const isExpired = (r.used === ALL || without('expired: used')) && r.h !== null && r.h.x <= cut;
    const isBeside = without('exclusive: alone') && r.used !== ALL && !isThird(r);
    if (!(isFree || isExpired || isBeside)) return undefined;
    if (r.fence !== null && r.fence >= o.f && !without('acquire: fence rises')) return undefined;
    const used = ALL + (isBeside ? weightOf(r.shared) : 0);
    return { ...r, h: entry(o as never, o.f), used, lv: 'ours', lx: o.x, fence: o.f };
  }
  if (r.shared.some(({ n }) => n === o.n)) return undefined;
  if (!(isFree || (r.used !== null && (r.used <= (o.room ?? o.l - o.w) || without('room'))))) return undefined;
  const f = (r.fence ?? o.now) + 1;
  const lease = without('shared: lease_version') ? { lv: r.lv, lx: r.lx } : { lv: 'ours' as const, lx: FAR };
  const h = without('shared: h goes') ? r.h : null;
  return put({ ...r, h, used: (r.used ?? 0) + o.w, ...lease, fence: f }, entry(o as never, f));
}

/** A take-over has seen the record, and names by version the expired entries that it ends. */
function takeOver(r: Rec, o: Op): Rec | undefined {
  if (!mayTry(r, o) || !still(r, o.ended, 'take-over: versions') || r.used === null) return undefined;
  if (entryOf(r, o.n) && !o.ended.some(({ n }: End) => n === o.n)) return undefined;
  if (!isUnderCap(r, o, 'cap: take-over')) return undefined;
  const isAlone = o.w === ALL;
  if (r.used - o.freed > (isAlone ? 0 : (o.room ?? o.l - o.w)) || (isAlone && r.fence !== null && r.fence >= o.f))
    return undefined;
  const f = isAlone ? o.f : (r.fence ?? 0) + 1;
  const left: Rec = {
    ...drop(r, o.ended),
    used: r.used - o.freed + o.w,
    lv: 'ours',
    lx: isAlone ? o.x : FAR,
    fence: f,
  };
  return put(isAlone ? left : { ...left, h: null }, entry(o as never, f));
}

/** The mark of a waiter whose row is there. `seen`: the version of its own expired entry. `back`: whether it puts a missing mark back. */
function mark(r: Rec, o: Op): Rec | undefined {
  const mine = entryOf(r, o.n);
  if (mine && mine.v !== o.seen) return undefined;
  if (o.back ? r.mark !== null : remembers(r, o.n) && !o.seen) return undefined;
  const after = { ...r, mark: without('mark: new value') ? (r.mark === null ? -1 : r.mark - 1) : o.m };
  return joined(r, o, after, (names) => remember(r, names));
}

/** The number stays, so that an earlier command that comes late changes nothing. */
const unmoved = (): Pick<Rec, 'moved' | 'movedAt'> => ({
  moved: undefined,
  ...(without('moved: number stays') && { movedAt: 0 }),
});

/** Removes the move. A write removes only the move that it has seen, because an operator may have moved another row since. */
const isMovedAnew = (r: Rec, o: Op): boolean => o.unmoves && r.moved !== o.moved && !without('moved: as seen');

/** Ends grants, and gives their places to those in line. */
function grant(r: Rec, o: Op): Rec | undefined {
  const grants: Entry[] = o.grants;
  if (r.fence !== o.fence && !without('give: fence as seen')) return undefined;
  if (!still(r, o.ended, 'give: versions')) return undefined;
  if (!o.others && r.mark !== o.m && !without('clear: mark as seen')) return undefined;
  if (!isUnderCap(r, o, 'cap: hand-off') || isMovedAnew(r, o)) return undefined;
  if (o.used) {
    if (r.used === null || (r.used - o.freed > o.room && !without('give: room'))) return undefined;
  } else if (
    r.used !== null ||
    (o.third === null
      ? r.lv !== null && !without('give: no third party')
      : r.lv !== o.third && !without('give: version of the third party'))
  )
    return undefined;
  const isNewest = ({ n }: Entry) => !replaces(n) || !r.ring.includes(n) || without('give: not superseded');
  if (!grants.every(isNewest)) return undefined;
  const [grant] = grants as [Entry];
  const isAlone = grant.w === ALL;
  const names = o.ended.filter(isRemembered).map(({ n }: End) => n);
  // The entry of the last exclusive holder goes, so that the ring remembers its request from now on.
  if (names.length === 0 && o.last && !without('give: last')) names.push(o.last);
  let after: Rec = {
    ...drop(r, o.ended),
    ...{ used: (r.used ?? 0) - o.freed + weightOf(grants), lv: 'ours', fence: (grants.at(-1) as Entry).f },
    ring: without('give: ring') ? r.ring : remember(r, names),
    mark: o.others ? (r.mark ?? (o.m === null ? o.back : null)) : null,
    latest: o.others ? r.latest : null,
    lx: isAlone ? grant.x : without('give: lease_expiry of shared') ? r.lx : FAR,
  };
  if (!isAlone) after.h = null;
  if (o.unmoves) Object.assign(after, unmoved());
  for (const e of grants) after = put(after, e);
  return after;
}

/** Ends grants, and removes the mark if no waiter is in line. */
function end(r: Rec, o: Op): Rec | undefined {
  if (!still(r, o.ended, 'give: versions') || (o.ended.length > 0 && r.used === null)) return undefined;
  if (o.clears && r.mark !== o.m && !(o.m === null ? without('end: no mark as seen') : without('clear: mark as seen')))
    return undefined;
  if (isMovedAnew(r, o)) return undefined;
  const after = drop(r, o.ended);
  const wasAlone = r.h?.i && !after.h?.i;
  const used = r.used === null && !without('end: used stays') ? null : (r.used ?? 0) - o.freed;
  const clears = o.clears && !(o.m === null);
  return {
    ...after,
    used,
    ...(clears && { mark: null, latest: null }),
    ...(o.unmoves && unmoved()),
    ...(wasAlone && { lv: null, freed: 0 }),
  };
}

/** A release or a break. The entry of an exclusive grant remembers its request, so that the ring stays as it is. */
function release(r: Rec, o: Op): Rec | undefined {
  const e = holders(r).find(({ i }) => i === o.i);
  if (!e || (o.v !== undefined && e.v !== o.v)) return undefined;
  const left = { ...drop(r, [{ ...e, how: o.how }]), used: (r.used ?? 0) - e.w, freed: 0 };
  if (e.w !== ALL)
    return { ...left, ring: remember(r, [e.n]), ...(without('shared release: lease_version stays') && { lv: null }) };
  if (r.mark !== null && !without('release: no mark')) return undefined;
  return without('release: lease_version goes') ? left : { ...left, lv: null };
}

/** Ends the caller's grant by its id and grants to the next waiter, without reading the record. */
function quick(r: Rec, o: Op): Rec | undefined {
  if (!r.h || r.h.i !== o.i || (r.h.s && !without('quick: not ending'))) return undefined;
  if (
    (r.h.n === o.grant.n && !without('quick: not its own request')) ||
    (remembers(r, o.grant.n) && !without('quick: not remembered'))
  )
    return undefined;
  if (r.mark === null && !without('quick: marked')) return undefined;
  if (!isUnderCap(r, o, 'cap: quick release')) return undefined;
  if (r.moved !== undefined && !without('quick: not moved')) return undefined;
  if (r.fence !== null && r.fence >= o.f && !without('quick: fence rises')) return undefined;
  const ring = without('quick: ring') ? r.ring : remember(r, [r.h.n]);
  return { ...r, h: { ...o.grant, f: o.f }, fence: o.f, lx: o.grant.x, ring };
}

/** A write on the caller's entry under the version that the call has read. */
function versioned(r: Rec, o: Op): Rec | undefined {
  const e = entryOf(r, o.n);
  if (!e || e.i !== o.i) return undefined;
  if (e.v !== o.v && !(o.t === 'claim' && without('claim: version'))) return undefined;
  switch (o.t) {
    case 'claim': {
      const rises = e.nf && !without('late grants');
      const f = rises ? Math.max((r.fence ?? 0) + 1, o.f) : e.f;
      const next = { ...e, v: o.nv, x: o.x, c: false, f, low: e.low && !rises, nf: false };
      return { ...expiring(r, next), fence: rises ? f : r.fence };
    }
    case 'answer':
      return put(r, { ...e, v: without('repeat: new version') ? e.v : o.nv });
    case 'renew':
      return expiring(r, { ...e, v: o.nv, x: Math.max(e.x, o.x), k: o.k ?? e.k });
    case 'raise':
      if (r.fence !== o.fence) return undefined;
      return { ...put(r, { ...e, v: o.nv, f: o.f, low: false, nf: false }), fence: o.f };
    case 'grace':
      return expiring(r, { ...e, v: o.nv, x: o.x, j: 0 });
    default:
      return put(r, { ...e, j: e.v });
  }
}

function heartbeat(r: Rec, o: Op): Rec | undefined {
  const e = entryOf(r, o.n);
  if (!e || e.i !== o.i || (e.s && !without('heartbeat: not ending')) || (e.x >= o.x && !without('heartbeat: later')))
    return undefined;
  const next = { ...e, v: o.nv, x: o.x };
  return without('heartbeat: lease_expiry') ? put(r, next) : expiring(r, next);
}

/** An operator breaks a grant, and waits for its holder. */
function markEnding(r: Rec, o: Op): Rec | undefined {
  const e = entryOf(r, o.n);
  if (!e || e.i !== o.i || e.s || e.c || e.x === -1) return undefined;
  return put(r, { ...e, s: true, v: without('ending: new version') ? e.v : o.nv });
}

/** A command has a higher number than all before, so a late one changes nothing. */
const setCap = (r: Rec, { m, number, x }: Op): Rec | undefined =>
  (r.capAt ?? 0) >= number && !without('cap: rises')
    ? undefined
    : { ...r, cap: m === null ? undefined : { m, at: number, x }, capAt: number };

const moveTo = (r: Rec, { k, number }: Op): Rec | undefined =>
  r.mark === null || (r.movedAt ?? 0) >= number ? undefined : { ...r, moved: k, movedAt: number };

const WRITES: Record<string, Write> = {
  ...{ cap: setCap, move: moveTo },
  ...{ acquire, takeOver, mark, grant, end, release, quick, heartbeat, markEnding },
  ...{ claim: versioned, answer: versioned, renew: versioned, raise: versioned, grace: versioned, note: versioned },
};
export const isWrite = ({ t }: Op): boolean => t in WRITES;

/** @returns the record after a write, or undefined if its condition did not hold */
export const landing = (rec: Rec | null, o: Op): Rec | undefined => {
  const after = (WRITES[o.t] as Write)(rec ?? BARE, o);
  return after && after.sup.length > 0 ? { ...after, sup: after.sup.filter((n) => after.ring.includes(n)) } : after;
};
