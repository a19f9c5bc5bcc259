import { type AttributeValue, DeleteItemCommand, PutItemCommand, QueryCommand } from '@aws-sdk/client-dynamodb';
import { publish } from '../../../functions/nameservice/publish.ts';
import { readNames } from '../../../functions/nameservice/read.ts';
import { repairNames } from '../../../functions/nameservice/repair.ts';
import type { NameserviceDependencies } from '../../../shared/nameservice/dependencies.ts';
import { publishInput, readNamesInput } from '../../../shared/nameservice/inputs.ts';
import type { RecordPage } from '../../../shared/nameservice/list.ts';
import { publishName } from '../../../shared/nameservice/publish.ts';
import { readAliasOrList } from '../../../shared/nameservice/read.ts';
import type { NameserviceRecord } from '../../../shared/nameservice/record.ts';
import { repairAlias } from '../../../shared/nameservice/repair-alias.ts';
import { repairAliasInput } from '../../../shared/nameservice/repair-inputs.ts';
import { worldIds } from '../chance/seed.ts';
import { call, madeAtFirstCall, newTable, noteCommands, testClient, watch } from '../emulators/aws.ts';
import { documented } from '../stack/contract.ts';
import { ManualClock } from '../time/clock.ts';

type Item = Record<string, AttributeValue>;

const [toPublish, toRead, toRepair] = [publishInput(), readNamesInput(), repairAliasInput()];

/** Stands in for the network: it receives a command and its input, and answers itself or passes the command on. */
type Interceptor = (command: string, input: never, next: (input?: object) => Promise<object>) => Promise<object>;

/** A table of its own, a clock to move, and the nameservice calls over them: as domain calls and as handlers. */
export async function nameserviceWorld(overrides: Partial<NameserviceDependencies> = {}) {
  const clock = new ManualClock();
  const dynamodb = testClient();
  const requests = watch(dynamodb);
  const intercepted: { by?: Interceptor } = {};
  dynamodb.middlewareStack.add(
    (next, context) => async (args) => {
      const { by } = intercepted;
      if (!by) return next(args);
      const pass = async (input: object = args.input) => (await next({ ...args, input: input as never })).output;
      const command = String(context.commandName).replace(/Command$/, '');
      return { output: (await by(command, args.input as never, pass)) as never, response: {} };
    },
    { step: 'initialize', priority: 'low', name: 'intercept' },
  );
  const dependencies: NameserviceDependencies = {
    dynamodb,
    clock,
    ids: worldIds(),
    table: await newTable('nameservice'),
    pointerStyle: 'address',
    ...overrides,
  };
  const { table } = dependencies;
  const published = documented('publish', publishName(dependencies));
  const read = documented('readNames', readAliasOrList(dependencies));
  const repaired = documented('repairNames', repairAlias(dependencies));
  const direct = testClient();

  return {
    clock,
    dynamodb,
    requests,
    intercepted,
    dependencies,
    table,
    /** Through the schema, which fills in defaults. */
    publish: async (input: object, as = call()) => published(toPublish.parse(input), as),
    repair: async (input: object, as = call()) => repaired(toRepair.parse(input), as),
    lookUp: async (alias: string, as = call()) =>
      (await read(toRead.parse({ alias }), as)) as NameserviceRecord & { commit: { address: string; t: number } },
    list: async (query: object = {}, as = call()) => (await read(toRead.parse(query), as)) as RecordPage,
    /** The deployed handlers, each with a client of its own. */
    handlers: functionHandlers(dependencies),
    /** The items in the table, read without the product. */
    rawItems: async (pk: string): Promise<Item[]> => {
      const query = {
        TableName: table,
        ConsistentRead: true,
        KeyConditionExpression: 'pk = :pk',
        ExpressionAttributeValues: { ':pk': { S: pk } },
      };
      return (await direct.send(new QueryCommand(query))).Items ?? [];
    },
    putRaw: (item: Item) => direct.send(new PutItemCommand({ TableName: table, Item: item })),
    deleteRaw: (pk: string, sk: string) =>
      direct.send(new DeleteItemCommand({ TableName: table, Key: { pk: { S: pk }, sk: { S: sk } } })),
  };
}

function functionHandlers(dependencies: NameserviceDependencies) {
  const factories = { publish, readNames, repairNames };
  const handlerOf = <Name extends keyof typeof factories>(name: Name) => {
    const dynamodb = testClient();
    noteCommands(name, dynamodb);
    const requests = watch(dynamodb);
    const handler = madeAtFirstCall(() => factories[name]({ ...dependencies, dynamodb }));
    return Object.assign(handler, { requests });
  };
  return {
    publish: handlerOf('publish'),
    readNames: handlerOf('readNames'),
    repairNames: handlerOf('repairNames'),
  };
}
