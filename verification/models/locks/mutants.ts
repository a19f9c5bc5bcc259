import type { Mutant } from '../engine/states.ts';

const caught = (what: string, ...mixes: string[]): Mutant => ({ what, mixes });
/** A second safeguard: the model still holds if only this rule is off. */
const second = (what: string, survives: string, ...mixes: string[]): Mutant => ({ what, mixes, survives });

/** Rules that can be switched off, and the mixes that show them soonest. */
export const MUTANTS: Record<string, Mutant> = {
  'acquire: no mark': caught('a first try does not ask for no mark', 'a task waits, and nothing goes wrong'),
  'acquire: not remembered': caught(
    'a first try does not ask whether its request has had a grant',
    'a repeated request',
  ),
  'acquire: freed': caught('a first try does not ask when a place came free', 'two alone, twice each, a late try'),
  'acquire: fence rises': caught(
    'an exclusive first try sets its fence without comparing',
    'two alone, twice each, a late try',
  ),
  'third party': caught('a record without `used` counts as empty', 'the crate and two alone'),
  margin: caught('an expired holder is replaced within the margin', 'alone after a dead holder'),
  'exclusive: alone': caught('a plain acquire does not ask whether anything is in use', 'alone and together'),
  room: caught('a shared acquire does not compare the weight in use', 'weights and limits'),
  'take-over: versions': caught(
    'a take-over names expired entries without their versions',
    'together after dead holders',
  ),
  'h remembers': caught(
    'the entry of the last exclusive holder remembers no request',
    'two alone, twice each, a late try',
    'breaks with wait',
  ),
  'end: forgets': caught('a grant that did not reach its party is remembered', 'bound grants'),
  'heartbeat: not ending': caught('a heartbeat extends a broken grant', 'breaks with wait'),
  'heartbeat: lease_expiry': caught('a heartbeat moves only the expiry of the entry', 'the crate and two alone'),
  'ending: new version': caught('a break that waits gives no new version', 'a break of a task'),
  'ending: only if it took the message': caught(
    'a break that waits ends the grant of a task that takes no message',
    'breaks of tasks',
  ),
  'shared: lease_version': caught(
    'a shared grant leaves lease_version and lease_expiry as they are',
    'the crate and two together',
  ),
  'shared release: lease_version stays': caught('a shared release removes lease_version', 'the crate and two together'),
  'release: lease_version goes': caught('an exclusive release leaves lease_version', 'two alone'),
  'release: no mark': caught('a plain release ignores the mark', 'a task waits, and nothing goes wrong'),
  'give: lease_expiry of shared': caught(
    'a shared grant of the line leaves lease_expiry',
    'the crate, shared from the line',
  ),
  'give: fence as seen': caught(
    'a grant of the line does not name the fence that was seen',
    'two tasks wait',
    'a writer, then readers as tasks',
  ),
  'give: versions': caught(
    'a hand-off names the entries that end without their versions',
    'two calls wait',
    'bound grants',
  ),
  'give: ring': caught('a hand-off does not remember the request that it ends', 'a request that is answered parks'),
  'give: last': caught(
    'a hand-off forgets the request of the last exclusive holder',
    'a request that is answered parks',
  ),
  'give: version of the third party': caught(
    'a hand-off over an expired record of the crate does not name its lease_version',
    'the crate, a task waits',
    'the crate, a call waits',
  ),
  'give: no third party': caught(
    'a grant of the line without a record does not ask for no third party',
    'the crate, a task and a call',
    'the crate, a call waits',
  ),
  'line: remembered': caught('a hand-off grants to a request that has had its grant', 'a row that stayed'),
  'line: second rows': second(
    'a second row of a request that has a grant is not notified',
    'its task learns of the grant by its end',
    'a call and a task of one request',
  ),
  'line: in order': caught(
    'one that fits passes the first that does not',
    'heavy and light in line',
    'readers, a writer waits',
  ),
  'clear: mark as seen': caught('the mark is removed at any value', 'two see a stale mark'),
  'mark: new value': caught('the mark counts from 1 each time', 'two see a stale mark'),
  'row before mark': caught('the mark comes before the row', 'a task waits, and nothing goes wrong'),
  'end: used stays': caught('the removal of a mark writes the weight in use', 'the crate, a call leaves'),
  'quick: not remembered': caught('a quick release does not ask whether its head has had a grant', 'a row that stayed'),
  'quick: not its own request': caught(
    'a quick release grants to the request that it ends',
    'a call and a task of one request',
  ),
  'quick: not ending': second(
    'a quick release does not ask whether the grant is ending',
    'the next holder learns of the break by previous, which the model does not have',
    'a quick release',
  ),
  'quick: marked': second(
    'a quick release does not ask for the mark',
    'the mark stays while a row waits, as long as the record is there',
    'a quick release, late',
  ),
  'quick: fence rises': second(
    'a quick release sets its fence without comparing',
    'no clock of the model goes back',
    'a quick release, late',
  ),
  'quick: ring': caught(
    'a quick release does not remember the request that it ends',
    'rows that stayed, and a quick release',
  ),
  'claim: version': caught('a claim names the id and not the version', 'a call waits'),
  'claim: row is read': caught('a claim does not check whether its row was withdrawn', 'withdrawals'),
  'withdraw: flag first': caught('a withdrawal reads the record before it flags the rows', 'withdrawals'),
  'late grants': caught('a grant that met no fence is answered as it is', 'the crate and two alone'),
  'late take-overs': caught(
    'a late first try that took over an expired grant is answered as it is',
    'the crate, late tries',
    'the crate, late writes',
  ),
  'repeat: new version': caught('a repeat writes no new version', 'bound grants', 'a state is tried again'),
  'repair: gone proves nothing': caught(
    'the schedule ends a grant if its message finds the task gone',
    'messages without effect',
  ),
  'end: no mark as seen': caught('an end without a waiter does not ask for a missing mark', 'executions end'),
  'end: reads again': caught('an end without a waiter does not read again', 'one of two readers ends, a writer waits'),
  'expired: used, shared: h goes': {
    what: 'a shared grant leaves the last exclusive holder, and a plain acquire takes it for an expired one',
    mixes: ['alone and together, late', 'alone and together'],
    off: ['expired: used', 'shared: h goes'],
  },
  'expired: used': second(
    'a plain acquire over an expired holder does not ask for its weight',
    'a shared grant removes the entry',
    'alone and together',
  ),
  'shared: h goes': second(
    'a shared grant leaves the last exclusive holder',
    'a plain acquire asks for the weight',
    'alone and together',
  ),
  'cap: first try': caught('a first try does not ask for the cap', 'a pause and a lift'),
  'cap: take-over': caught(
    'a second try and a take-over do not ask for the cap that they saw',
    'a pause after dead holders',
  ),
  'cap: hand-off': caught('a hand-off does not ask for the cap that it saw', 'a late pause, and a task waits'),
  'cap: quick release': caught('a quick release does not ask for the cap', 'a pause and a quick release'),
  'cap: rises': caught('a late command counts', 'a pause and a lift'),
  'cap: alone': caught('a waiter that is heavier than the cap waits', 'a cap below a weight'),
  'cap: weight': caught('a grant asks that less than the cap is in use', 'a cap and weights'),
  'cap: names the command': caught(
    'a grant after a cap has ended names the weight and not the command',
    'a pause that ends, and another',
  ),
  'cap: a lift hands off': caught('a lift does not hand off', 'a pause, and a task waits'),
  'moved: first': caught('a hand-off ignores who was moved', 'a waiter is moved'),
  'moved: passed over': caught('a moved waiter that is gone stops the line', 'a moved waiter is cancelled'),
  'moved: served once': caught('a move stays after its grant', 'a waiter is moved'),
  'moved: as seen': caught('a grant removes whatever move there is', 'two waiters are moved'),
  'moved: number stays': caught('the number of a move goes with it', 'a move comes late'),
  'moved: hands off': caught('a move does not hand off', 'a light waiter is moved'),
  'quick: not moved': caught(
    'a quick release does not ask whether a waiter was moved',
    'a waiter is moved before a quick release',
  ),
  'give: room': second(
    'a grant of the line does not compare the weight in use',
    'the fence as seen',
    'readers, a writer waits',
  ),
  'replace: form': caught(
    'a join names itself the latest, whatever the record shows',
    'newest of tasks',
    'newest of calls',
  ),
  'replace: ring': caught(
    'the ring does not name the request that a join replaces',
    'newest of tasks',
    'newest of calls',
  ),
  'replace: own request': caught(
    'a second row of a request counts as another request',
    'newest, submitted twice',
    'newest, doubled',
  ),
  'replace: holders': second(
    'a join replaces the latest even if it holds the key',
    'a holder does not read the ring, and its task takes no second message',
    'newest of tasks',
  ),
  'give: not superseded': caught(
    'a hand-off does not ask whether its waiter was replaced',
    'newest beside others',
    'newest of tasks',
  ),
  'ask: who said running': caught(
    'a holder is asked to stop that did not say running',
    'newest, and a holder that did not say running',
  ),
};
