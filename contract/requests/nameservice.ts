import type * as z from 'zod/mini';
import { type PublishInput, publishInput, readNamesInput } from '../../shared/nameservice/inputs.ts';
import { type RepairAliasInput, repairAliasInput } from '../../shared/nameservice/repair-inputs.ts';
import { MEANING } from '../meanings.ts';
import { requests } from '../schema.ts';
import { bytes, cursor, type Field, json, jsonObject, limit, type Request, request } from './request.ts';

/** A name without a branch must leave room for `:main`. */
const ALIAS = '^([^:]{1,1019}|[^:]+:[^:]+)$';

const alias = (description = `${MEANING.alias} A name alone means its branch \`main\`.`): Field => ({
  description,
  pattern: ALIAS,
  ...bytes(1024),
});
const address = () => ({ description: 'Where the commit or the index is stored.', ...bytes(1024) });
const t = () => ({ description: 'The watermark: a whole number that only a repair lowers.' });
const version = () => ({ description: 'The version.' });

const envelope = (requestId: string) => ({
  op: { description: 'The operation.' },
  alias: alias(),
  requestId: { description: requestId, ...bytes(256) },
});
const ENVELOPE = envelope(
  'The id of one creation, which makes retries safe: a retry with the same id receives the outcome of the first try. Operations that create nothing ignore it.',
);
const TARGET = { address: address(), t: t() };

const REF = { properties: TARGET };
const STATUS = {
  properties: { state: { description: 'The state, in one word.', ...bytes(256) }, v: version() },
};
const NEXT_STATUS = { properties: { ...STATUS.properties, extra: jsonObject('Any JSON object up to 4 KiB.') } };
const NEXT_CONFIG = {
  properties: {
    v: version(),
    payload: {
      description: 'The content. Null empties the config.',
      properties: {
        defaultContextAddress: { description: 'Where the default context of the ledger is stored.', ...bytes(1024) },
        extra: jsonObject('Any JSON object up to 4 KiB.'),
      },
    },
  },
};

const byOperation = (operations: Record<string, { id: string }>) => ({
  discriminator: {
    propertyName: 'op',
    mapping: Object.fromEntries(Object.entries(operations).map(([op, { id }]) => [op, `#/components/schemas/${id}`])),
  },
});

type Op = PublishInput['op'];
type OperationOf<O extends Op> = Extract<z.input<ReturnType<typeof publishInput>>, { op: O }>;

/** An operation or a field without a description does not compile. */
const OPERATIONS: {
  [O in Op]: {
    id: string;
    description: string;
    fields: Record<Exclude<keyof OperationOf<O>, keyof typeof ENVELOPE>, Field>;
  };
} = {
  initLedger: { id: 'InitLedger', description: 'Creates a ledger.', fields: {} },
  publishCommit: {
    id: 'PublishCommit',
    description: 'Raises the commit head of a ledger. A `t` that is not higher is stale, and changes nothing.',
    fields: TARGET,
  },
  publishIndex: {
    id: 'PublishIndex',
    description: 'Raises the index of a ledger. A `t` that is not higher is stale, and changes nothing.',
    fields: { ...TARGET, allowEqual: { description: 'If true, replaces an index at the same `t`.' } },
  },
  retract: { id: 'Retract', description: 'Retracts a ledger, which stays visible.', fields: {} },
  compareAndSetRef: {
    id: 'CompareAndSetRef',
    description: 'Sets a ref, if it still is as expected.',
    fields: {
      ref: { description: 'The ref: the head of the commits, or of the index.' },
      expected: {
        description: 'The ref that the alias must have. Null if the alias must not exist, and is created as a ledger.',
        ...REF,
      },
      next: { description: 'The ref to set.', ...REF },
    },
  },
  fastForwardCommit: {
    id: 'FastForwardCommit',
    description: 'Raises the commit head to a higher `t`, and creates the ledger if it does not exist.',
    fields: {
      ...TARGET,
      maxRetries: { description: 'How often to retry if another caller creates the ledger at the same time.' },
    },
  },
  pushStatus: {
    id: 'PushStatus',
    description: 'Sets the status, if its state and version still are as expected.',
    fields: {
      expected: { description: 'The status that the alias must have.', ...STATUS },
      next: { description: 'The status to set. The version must rise.', ...NEXT_STATUS },
    },
  },
  pushConfig: {
    id: 'PushConfig',
    description: 'Sets the config of a ledger, if its version still is as expected.',
    fields: {
      expected: { description: 'The config that the ledger must have.', properties: { v: version() } },
      next: { description: 'The config to set. The version must rise.', ...NEXT_CONFIG },
    },
  },
  publishGraphSource: {
    id: 'PublishGraphSource',
    description: 'Creates a graph source, or replaces its definition.',
    fields: {
      sourceType: { description: 'The type of the graph source.', ...bytes(256) },
      config: json('The config: any JSON up to 4 KiB, or a string that is JSON.'),
      dependencies: {
        description: 'The aliases from which the graph source is made.',
        type: 'array',
        maxItems: 100,
        items: { type: 'string', minLength: 1, ...alias() },
      },
    },
  },
  publishGraphSourceIndex: {
    id: 'PublishGraphSourceIndex',
    description: 'Raises the index of a graph source.',
    fields: TARGET,
  },
  retractGraphSource: { id: 'RetractGraphSource', description: 'Retracts a graph source.', fields: {} },
};

const publish = publishInput();

export const operations: Request[] = publish.def.options.map((option) => {
  const { id, description, fields } = OPERATIONS[option.def.shape.op.def.values[0] as Op];
  requests.add(option, { id, description });
  return { id, schema: option, fields: { ...ENVELOPE, ...fields }, rules: {} };
});

requests.add(publish, { id: 'PublishRequest', description: 'Creates or changes an alias: `op` says how.' });

export const publishRequest: Request = {
  id: 'PublishRequest',
  schema: publish,
  fields: {},
  rules: byOperation(OPERATIONS),
};

export const readNamesRequest = request(readNamesInput(), {
  id: 'ReadNamesRequest',
  description: 'Reads an alias, or lists aliases.',
  fields: {
    alias: alias(
      `${MEANING.alias} A name alone means its branch \`main\`. Without an alias, the answer is a page of records.`,
    ),
    kind: { description: 'Only records of this kind. Not with `alias`.' },
    prefix: { description: 'Only aliases that begin with this text. Not with `alias`.', ...bytes(1024) },
    limit: { ...limit(), description: `${limit().description} Not with \`alias\`.` },
    cursor: { ...cursor(), description: `${cursor().description} Not with \`alias\`.` },
  },
});

const seen = 'The value that the caller saw, which the alias must still have.';
const expected = { description: seen };
const next = { description: 'The value to set. The version must not rise.' };
const REPAIR_ENVELOPE = envelope(
  'The id of one purge, which makes retries safe: a retry within ten minutes receives the outcome of the first try. Other operations ignore it.',
);

const REPAIRS: {
  [O in RepairAliasInput['op']]: {
    id: string;
    description: string;
    fields: Record<Exclude<keyof RepairOf<O>, keyof typeof ENVELOPE>, Field>;
  };
} = {
  resetRef: {
    id: 'ResetRef',
    description: 'Sets a ref to the same `t` or a lower one.',
    fields: {
      ref: { description: 'The ref: the head of the commits, or of the index.' },
      expected: { ...expected, ...REF },
      next: {
        description: 'The ref to set. For a ref that points to nothing, the address is null and `t` is 0.',
        ...REF,
      },
    },
  },
  resetStatus: {
    id: 'ResetStatus',
    description: 'Sets the status to the same version or a lower one.',
    fields: { expected: { ...expected, ...STATUS }, next: { ...next, ...NEXT_STATUS } },
  },
  resetConfig: {
    id: 'ResetConfig',
    description: 'Sets the config of a ledger to the same version or a lower one.',
    fields: { expected: { ...expected, properties: { v: version() } }, next: { ...next, ...NEXT_CONFIG } },
  },
  unretract: {
    id: 'Unretract',
    description: 'Ends a retraction.',
    fields: { expected: { ...expected, properties: { kind: { description: 'The kind of the alias.' } } } },
  },
  purge: {
    id: 'Purge',
    description: 'Deletes all items of a retracted alias.',
    fields: {
      expected: {
        description: `${seen} Null if the items of the alias do not form a record.`,
        properties: {
          kind: { description: 'The kind of the alias.' },
          commit: { description: 'The commit ref of a ledger.', ...REF },
          index: { description: 'The index ref.', ...REF },
          status: { description: 'The status.', ...STATUS },
          config: { description: 'The config.', properties: { v: version() } },
        },
      },
    },
  },
};
type RepairOf<O extends RepairAliasInput['op']> = Extract<z.input<ReturnType<typeof repairAliasInput>>, { op: O }>;

const repair = repairAliasInput();

export const repairOperations: Request[] = repair.def.options.map((option) => {
  const { id, description, fields } = REPAIRS[option.def.shape.op.def.values[0] as RepairAliasInput['op']];
  requests.add(option, { id, description });
  return { id, schema: option, fields: { ...REPAIR_ENVELOPE, ...fields }, rules: {} };
});

requests.add(repair, { id: 'RepairRequest', description: 'Repairs an alias: `op` says how.' });

export const repairRequest: Request = { id: 'RepairRequest', schema: repair, fields: {}, rules: byOperation(REPAIRS) };
