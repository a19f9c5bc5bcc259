import { randomUUID } from 'node:crypto';
import { json } from 'node:stream/consumers';
import { listen } from '../../../local/listen.ts';

interface Query {
  logGroupNames: string[];
  queryString: string;
  startTime: number;
  endTime: number;
}

/** The groups and queries of the double. Each query has `status` from its second answer on. */
export interface LogsDouble {
  url: string;
  /** The lines of each group, as JSON. */
  groups: Map<string, string[]>;
  queries: Query[];
  outcome: { status: string };
  stop(): Promise<void>;
}

/**
 * A double of CloudWatch Logs Insights over the wire. It knows queries of the one form that the command sends: the lines of a key with one of some
 * messages, the newest first. As on AWS, a query has not ended when it is first asked about.
 */
export async function startLogs(): Promise<LogsDouble> {
  const groups = new Map<string, string[]>();
  const queries: Query[] = [];
  const outcome = { status: 'Complete' };
  const asked = new Map<string, Query & { polls: number }>();
  const calls: Record<string, (input: Query & { queryId: string }) => object> = {
    StartQuery: (query) => {
      for (const name of query.logGroupNames) if (!groups.has(name)) throw new Error(`there is no group ${name}`);
      queries.push(query);
      const queryId = randomUUID();
      asked.set(queryId, { ...query, polls: 0 });
      return { queryId };
    },
    GetQueryResults: ({ queryId }) => {
      const query = asked.get(queryId);
      if (!query) throw new Error(`there is no query ${queryId}`);
      if (query.polls++ === 0) return { status: 'Running', results: [] };
      return { status: outcome.status, results: found(query, groups).map(fieldsOf) };
    },
  };
  const { url, stop } = await listen(async (request, response) => {
    const input = (await json(request)) as Query & { queryId: string };
    response.setHeader('content-type', 'application/x-amz-json-1.1');
    try {
      const answer = calls[String(request.headers['x-amz-target']).split('.')[1] ?? '']?.(input);
      if (!answer) throw new Error(`the double does not know ${request.headers['x-amz-target']}`);
      response.end(JSON.stringify(answer));
    } catch (error) {
      const fault = { __type: 'ResourceNotFoundException', message: (error as Error).message };
      response.writeHead(400).end(JSON.stringify(fault));
    }
  });
  return { url, groups, queries, outcome, stop };
}

const FORM =
  /^fields @timestamp, @message \| filter key = (".*") and message in (\[.*\]) \| sort @timestamp desc \| limit (\d+)$/;

function found({ queryString, logGroupNames, startTime, endTime }: Query, groups: LogsDouble['groups']): string[] {
  const [, key = '', messages = '', limit] = FORM.exec(queryString) ?? [];
  if (!limit) throw new Error(`the double does not know the query ${queryString}`);
  const wanted = { key: JSON.parse(key), messages: JSON.parse(messages) };
  return logGroupNames
    .flatMap((name) => groups.get(name) ?? [])
    .map((text) => ({ text, line: JSON.parse(text) }))
    .filter(({ line }) => line.key === wanted.key && wanted.messages.includes(line.message))
    .filter(
      ({ line }) => Date.parse(line.timestamp) / 1000 >= startTime && Date.parse(line.timestamp) / 1000 <= endTime,
    )
    .toSorted((one, other) => (one.line.timestamp > other.line.timestamp ? -1 : 1))
    .slice(0, Number(limit))
    .map(({ text }) => text);
}

const fieldsOf = (text: string) => [
  { field: '@timestamp', value: JSON.parse(text).timestamp },
  { field: '@message', value: text },
  { field: '@ptr', value: randomUUID() },
];
