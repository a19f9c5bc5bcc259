import { isHoldfastError } from '../../../clients/typescript/src/errors.ts';
import type { RequestOf } from '../../../clients/typescript/src/transport.ts';
import { inShell } from '../../../deployment/stop-command.ts';
import { exitCodeOf, Failure, messageOf, misuse } from '../failure.ts';
import type { Verb } from '../verb.ts';

const KINDS = ['ledger', 'graph_source'] as const;

export const publish: Verb = {
  summary: 'publish what a ledger or a graph source points to',
  usage: 'OPERATION ALIAS [NAME=TEXT | NAME:=JSON ...]',
  words: [2, 32],
  options: {},
  notes: `docs/nameservice.md lists the operations and their fields. initLedger and fastForwardCommit create a ledger.
A stale publication changes nothing.`,
  example: 'holdfast publish fastForwardCommit books address=s3://books/commit/2 t:=2',
  async run({ arguments: args, output, connect }) {
    const [op = '', alias = '', ...fields] = args.words;
    // The service checks the fields, and its error names each field that does not fit the operation.
    const request = { ...Object.fromEntries(fields.map(field)), op, alias } as unknown as RequestOf<'publish'>;
    const answer = await connect()
      .call('publish', request)
      .catch((error) => {
        if (!isHoldfastError(error, 'NotFound')) throw error;
        throw new Failure(
          `${messageOf(error)}\nto create a ledger: holdfast publish initLedger ${inShell(alias)}`,
          exitCodeOf(error),
        );
      });
    if (output.isJson) output.json(answer);
    else {
      output.line(`${answer.alias} is ${answer.outcome}${answer.created ? ', and was created' : ''}`);
      output.line(JSON.stringify(answer.current));
    }
    return 0;
  },
};

function field(word: string): [name: string, value: unknown] {
  const [, name = '', colon, text = ''] = /^(\w+)(:?)=([\s\S]*)$/.exec(word) ?? [];
  if (!name) throw misuse(`a field must be NAME=TEXT or NAME:=JSON, not '${word}'`);
  if (!colon) return [name, text];
  try {
    return [name, JSON.parse(text)];
  } catch {
    throw misuse(`the text after ${name}:= must be JSON, not '${text}'`);
  }
}

export const nameservice: Verb = {
  summary: 'list the heads of the nameservice, and how far each index is behind',
  usage: '[PREFIX]',
  words: [0, 1],
  options: { kind: { value: 'KIND', help: 'only aliases of this kind', choices: KINDS } },
  example: 'holdfast names --kind ledger',
  async run({ arguments: args, output, connect }) {
    const [prefix] = args.words;
    const kind = args.text('kind') as (typeof KINDS)[number] | undefined;
    const filter = { ...(prefix && { prefix }), ...(kind && { kind }) };
    const rows = [];
    for await (const record of connect().rows('readNames', filter, ({ records }) => records)) {
      if (output.isJson) output.json(record);
      else rows.push(record);
    }
    if (!output.isJson)
      output.table(
        ['ALIAS', 'KIND', 'COMMIT', 'INDEX', 'BEHIND', 'STATUS', 'RETRACTED', 'UPDATED'],
        rows.map((record) => [
          record.alias,
          record.kind,
          record.kind === 'ledger' ? record.commit.t : null,
          record.index.t,
          record.kind === 'ledger' ? record.commit.t - record.index.t : null,
          record.status.state,
          record.retracted,
          record.updatedAt,
        ]),
      );
    return 0;
  },
};
