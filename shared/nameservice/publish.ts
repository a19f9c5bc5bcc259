import type { Call } from '../aws/call.ts';
import { aliasText } from './alias.ts';
import { compareAndSetRef, fastForwardCommit } from './compare-and-set.ts';
import { configChange } from './config.ts';
import type { NameserviceDependencies } from './dependencies.ts';
import { publishGraphSource } from './graph-sources.ts';
import type { ConfigInput, PublishInput, StatusInput } from './inputs.ts';
import { initLedger, retract } from './ledgers.ts';
import { checkAddress, checkContext, type Pointer, type Ref } from './pointers.ts';
import type { LedgerConfig, NameserviceRecord, Status } from './record.ts';
import { publishRef, type RefValue } from './refs.ts';
import type { Published } from './results.ts';
import { statusChange } from './status.ts';
import { pushVersion } from './versioned.ts';

/** The state after a publish, of the part of the record that the operation is about. */
export type Current = NameserviceRecord | Pointer | Status | LedgerConfig | { retracted: true };

/**
 * Runs a write of the nameservice, except for repairs, as its `op` says. Most writes take one request to DynamoDB,
 * whether they win or lose. Replacing an index at the same t takes a second one.
 * @throws HoldfastError Conflict, AlreadyExists, NotFound, InvalidRequest, Throttled, Unavailable, OutcomeUnknown
 */
export function publishName(dependencies: NameserviceDependencies) {
  return async (input: PublishInput, call: Call): Promise<Published<Current>> => {
    const { requestId = dependencies.ids.uuid(), ...content } = input;
    const { alias } = content;
    // The schema gives the fields a fixed order, so a repeat has the same text.
    const request = { requestId, principal: call.principal, content: JSON.stringify(content) };
    const write = { dependencies, alias, request, call };
    const on = (ref: Ref) => ({ ...write, ref });
    checkAddresses(input, dependencies);
    switch (input.op) {
      case 'initLedger':
        return initLedger(write);
      case 'publishCommit':
        return publishRef(on('commit'), targetOf(input), { kind: 'ledger' });
      case 'publishIndex':
        return publishRef(on('index'), targetOf(input), { kind: 'ledger', allowEqual: input.allowEqual });
      case 'retract':
        return retract(write, 'ledger');
      case 'compareAndSetRef':
        return compareAndSetRef(on(input.ref), input.expected, input.next);
      case 'fastForwardCommit':
        return fastForwardCommit(on('commit'), targetOf(input), input.maxRetries);
      case 'pushStatus':
        return pushVersion<Current>(write, statusChange(input), rises(input));
      case 'pushConfig':
        return pushVersion<Current>(write, configChange(input), rises(input));
      case 'publishGraphSource': {
        const source = { ...input, dependencies: input.dependencies.map(aliasText) };
        return publishGraphSource(write, source);
      }
      case 'publishGraphSourceIndex':
        return publishRef(on('index'), targetOf(input), { kind: 'graph_source' });
      case 'retractGraphSource':
        return retract(write, 'graph_source');
    }
  };
}

const rises = ({ expected, next }: StatusInput | ConfigInput) => next.v > expected.v;

const targetOf = ({ address, t }: RefValue): RefValue => ({ address, t });

function checkAddresses(input: PublishInput, { pointerStyle }: NameserviceDependencies): void {
  if ('address' in input) checkAddress(input.address, 'address', pointerStyle);
  if (input.op === 'compareAndSetRef') checkAddress(input.next.address, 'next.address', pointerStyle);
  if (input.op === 'pushConfig') checkContext(input.next.payload, pointerStyle);
}
