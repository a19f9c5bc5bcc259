import type { AttributeValue, CreateTableCommandInput, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { serviceError } from './cuttable.ts';

// Limits of DynamoDB that its emulator does not have (docs/histories.md#the-faults). The emulator has the others: keys, items, batches.

/** The maximum size of the values of keys, in bytes. It applies to tables and indexes. */
const MAX_BYTES = { HASH: 2048, RANGE: 1024 };
/** The maximum in one expression. DynamoDB does not say whether an assignment counts. Here it does. */
const MAX_OPERATORS = 300;
const OPERATOR = /<>|<=|>=|[=<>+-]|\b(?:AND|OR|NOT|BETWEEN|IN)\b|\b\w+\s*\(/g;
const ASSIGNMENT = /(#?\w+)\s*=\s*(:\w+)\s*(?=,|$|\b(?:SET|REMOVE|ADD|DELETE)\b)/g;

type Definition = Pick<CreateTableCommandInput, 'GlobalSecondaryIndexes'>;
type Attributes = Record<string, AttributeValue>;

/** A write as code gives it to the SDK, even within a batch or a transaction. */
interface Write {
  TableName?: string;
  Item?: Attributes;
  Key?: Attributes;
  UpdateExpression?: string;
  ConditionExpression?: string;
  FilterExpression?: string;
  ExpressionAttributeNames?: Record<string, string>;
  ExpressionAttributeValues?: Attributes;
  RequestItems?: Record<string, { PutRequest?: { Item?: Attributes } }[]>;
  TransactItems?: Record<string, Write>[];
}

/** Lets a client refuse what exceeds a limit of DynamoDB that the emulator lacks. Such a request is not sent. */
export function keepLimits(
  client: Pick<DynamoDBClient, 'middlewareStack'>,
  definitionOf: (table: string) => Definition | undefined,
): void {
  client.middlewareStack.add(
    (next) => async (args) => {
      for (const write of writesOf(args.input as Write)) {
        const excess = excessOf(write, definitionOf(write.TableName ?? ''));
        if (excess) throw Object.assign(serviceError('ValidationException', 400), { message: excess });
      }
      return next(args);
    },
    { step: 'deserialize', priority: 'low', name: 'limits' },
  );
}

function writesOf(input: Write): Write[] {
  const { RequestItems: batch = {}, TransactItems: transaction } = input;
  if (transaction) return transaction.flatMap((one) => Object.values(one));
  const puts = Object.entries(batch).flatMap(([TableName, requests]) =>
    // A BatchGetItem does not have a list here.
    Array.isArray(requests) ? requests.flatMap(({ PutRequest: put }) => (put ? [{ TableName, ...put }] : [])) : [],
  );
  return [input, ...puts];
}

/** The message of DynamoDB about a write that exceeds a limit, otherwise undefined. */
function excessOf(write: Write, definition: Definition | undefined): string | undefined {
  const expressions = [write.UpdateExpression, write.ConditionExpression, write.FilterExpression];
  for (const expression of expressions)
    if ((expression?.match(OPERATOR)?.length ?? 0) > MAX_OPERATORS)
      return `Invalid expression: The expression contains too many operators; limit: ${MAX_OPERATORS}`;
  const known = write.Item ?? { ...write.Key, ...assigned(write) };
  for (const { KeySchema: schema = [] } of definition?.GlobalSecondaryIndexes ?? []) {
    // An item without one of the attributes is not in the index.
    if (schema.some(({ AttributeName: name = '' }) => known[name] === undefined)) continue;
    for (const { AttributeName: name = '', KeyType: type = 'HASH' } of schema)
      if (Buffer.byteLength(known[name]?.S ?? '') > MAX_BYTES[type])
        return `One or more parameter values were invalid: Size of the ${type.toLowerCase()} key of a secondary index has exceeded the maximum size limit of ${MAX_BYTES[type]} bytes`;
  }
  return undefined;
}

/** The attributes that an update sets to a value. */
function assigned(write: Write): Attributes {
  const { UpdateExpression: update = '', ExpressionAttributeNames: names = {} } = write;
  return Object.fromEntries(
    [...update.matchAll(ASSIGNMENT)].flatMap(([, name = '', alias = '']) => {
      const value = write.ExpressionAttributeValues?.[alias];
      return value ? [[names[name] ?? name, value]] : [];
    }),
  );
}
