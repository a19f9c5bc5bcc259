import type { Call } from '../aws/call.ts';
import { aliasText } from './alias.ts';
import { compareAndSetRef, fastForwardCommit } from './compare-and-set.ts';
import { pushConfig } from './config.ts';
import type { NameserviceDependencies } from './dependencies.ts';
import { publishGraphSource } from './graph-sources.ts';
import type { PublishInput } from './inputs.ts';
import { initLedger, retract } from './ledgers.ts';
import { checkAddress, checkContext, type Pointer, type Ref } from './pointers.ts';
import type { LedgerConfig, NameserviceRecord, Status } from './record.ts';
import { publishRef, type Target } from './refs.ts';
import type { Published } from './results.ts';
import { pushStatus } from './status.ts';

/** What stands under the alias after a publish: what the operation is about. */
export type Current = NameserviceRecord | Pointer | Status | LedgerConfig | { retracted: true };

/**
 * Every write of the nameservice, by `op`. Each is one DynamoDB request, whether it is won, stale or lost.
 * @throws HoldfastError Conflict, AlreadyExists, NotFound, InvalidRequest, Throttled, Unavailable, OutcomeUnknown
 */
export function publisher(dependencies: NameserviceDependencies) {
  return async (input: PublishInput, call: Call): Promise<Published<Current>> => {
    const { requestId = dependencies.ids.uuid(), ...content } = input;
    const { alias } = content;
    // The schema has put the fields into its own order.
    const request = { requestId, principal: call.principal, content: JSON.stringify(content) };
    const on = (ref: Ref) => ({ dependencies, alias, ref, request, call });
    checkAddresses(input, dependencies);
    switch (input.op) {
      case 'initLedger':
        return initLedger(dependencies, alias, request, call);
      case 'publishCommit':
        return publishRef(on('commit'), targetOf(input), { kind: 'ledger' });
      case 'publishIndex':
        return publishRef(on('index'), targetOf(input), { kind: 'ledger', allowEqual: input.allowEqual });
      case 'retract':
        return retract(dependencies, alias, 'ledger', request, call);
      case 'compareAndSetRef':
        return compareAndSetRef(on(input.ref), input.expected, input.next);
      case 'fastForwardCommit':
        return fastForwardCommit(on('commit'), targetOf(input), input.maxRetries);
      case 'pushStatus':
        return pushStatus(dependencies, alias, input, request, call);
      case 'pushConfig':
        return pushConfig(dependencies, alias, input, request, call);
      case 'publishGraphSource': {
        const source = { ...input, dependencies: input.dependencies.map(aliasText) };
        return publishGraphSource(dependencies, alias, source, request, call);
      }
      case 'publishGraphSourceIndex':
        return publishRef(on('index'), targetOf(input), { kind: 'graph_source' });
      case 'retractGraphSource':
        return retract(dependencies, alias, 'graph_source', request, call);
    }
  };
}

const targetOf = ({ address, t }: Target): Target => ({ address, t });

function checkAddresses(input: PublishInput, { pointerStyle }: NameserviceDependencies): void {
  if ('address' in input) checkAddress(input.address, 'address', pointerStyle);
  if (input.op === 'compareAndSetRef') checkAddress(input.next.address, 'next.address', pointerStyle);
  if (input.op === 'pushConfig') checkContext(input.next.payload, pointerStyle);
}
