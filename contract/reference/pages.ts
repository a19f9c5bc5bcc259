import { ERRORS, type ErrorCode } from '../../shared/errors.ts';
import { ERROR_CODES, ERROR_CONTRACTS } from '../errors.ts';
import type { JsonSchema } from '../openapi/json-schema.ts';
import { openapi } from '../openapi.ts';
import { COMMON_ERRORS } from '../routes/route.ts';
import { ROUTES } from '../routes.ts';
import { answersOf, callSection, example, objectTable } from './call.ts';
import { table } from './markdown.ts';
import { type Components, componentsIn, notNull, referredName } from './schema.ts';

interface Page {
  title: string;
  about: string;
  calls: string[];
}

/** The pages of calls, by their names in docs/api. */
const PAGES: Record<string, Page> = {
  leases: {
    title: 'Leases and permits',
    about:
      'The calls of a program that needs a key. With `limit` or `mode` `shared`, it asks for a [permit](../permits.md), and otherwise for a lease. [Calling from other languages](../callers.md#what-your-program-does) says what your program does with the answers.',
    calls: ['acquire', 'heartbeat', 'release', 'withdraw'],
  },
  keys: {
    title: 'Keys and their lines',
    about: 'The call that shows who has a key, and who waits for it.',
    calls: ['readLeases'],
  },
  once: {
    title: 'Once',
    about:
      'The calls of a program that runs once in a period, or once for an event. Its grants use `heartbeat` and `release` of [leases](leases.md). Operators end them with [`break`](operators.md) and `kind` `once`.',
    calls: ['onceBegin', 'onceComplete', 'onceForget', 'readOnce'],
  },
  rates: {
    title: 'Rates',
    about: 'The calls of a program that may start only so much work in a period.',
    calls: ['rateReserve', 'rateSettle', 'rateForget', 'readRates'],
  },
  operators: {
    title: 'Operators of leases and permits',
    about:
      'The calls with which an operator ends a lease, a permit or a wait, caps a key, or moves a waiter to the front. The guides are [A holder is stuck](../operations.md#a-holder-is-stuck) and [Pause a key, and let one go first](../operations.md#pause-a-key-and-let-one-go-first).',
    calls: ['breakLease', 'cancelWaiter', 'capKey', 'runNext'],
  },
  commits: {
    title: 'Commits',
    about:
      'The calls that write and read objects in S3 under conditions. The guide is [Conditional commits](../commits.md).',
    calls: ['commit', 'stageUpload', 'readCommit', 'readInFlight', 'resetFence'],
  },
  nameservice: {
    title: 'Nameservice',
    about: 'The calls that publish and read the head of a ledger. The guide is [Nameservice](../nameservice.md).',
    calls: ['publish', 'readNames', 'repairNames'],
  },
  expired: {
    title: 'Expired records',
    about: 'The calls that report expired records, and delete them. The guide is [Expired records](../expiry.md).',
    calls: ['report', 'readExpired', 'clean'],
  },
  deployment: {
    title: 'The deployment and its caller',
    about:
      'The calls that show what is deployed and who you are. Every caller may send them. They do not read the tables or the bucket.',
    calls: ['readHealth', 'whoami', 'readContract'],
  },
};

const WRITTEN = '<!-- Written from contract/ by npm run contract. -->\n';

/**
 * The pages of docs/api, by file name.
 * @throws Error if a route is not on exactly one page
 */
export function referencePages(): Record<string, string> {
  const { schemas } = openapi().components as { schemas: Components };
  const listed = Object.values(PAGES).flatMap(({ calls }) => calls);
  const missing = ROUTES.filter((route) => listed.filter((name) => name === route.function).length !== 1);
  if (missing.length > 0)
    throw new Error(`${missing.map((route) => route.function).join(', ')}: list each call on one page of PAGES`);
  const pages = Object.entries(PAGES).map(([name, page]): [string, string] => [`${name}.md`, callPage(page, schemas)]);
  return { ...Object.fromEntries(pages), 'errors.md': errorPage(schemas, objectPages(pages)) };
}

/** The page that describes the object of each anchor. If several pages do, the last one. */
function objectPages(pages: [name: string, text: string][]): Map<string, string> {
  const sections = pages.flatMap(([name, text]) =>
    [...text.matchAll(/^### (\w+)$/gm)].map(([, object = '']): [string, string] => [anchor(object), name]),
  );
  return new Map(sections);
}

function callPage({ title, about, calls }: Page, components: Components): string {
  const routes = calls.flatMap((name) => ROUTES.filter((route) => route.function === name));
  const contents = routes.map(
    ({ summary, method, path }) => `- [${summary}](#${anchor(summary)}): \`${method} ${path}\``,
  );
  const answers = routes.flatMap(answersOf);
  const shared = answers.filter((name, at) => answers.indexOf(name) !== at);
  const objects = componentsIn(
    answers.map((name) => components[name]),
    components,
    new Set(shared),
  );
  return [
    `${WRITTEN}# ${title}\n`,
    `${about} [The API](../api.md) says what holds for all calls.\n`,
    `${contents.join('\n')}\n`,
    ...routes.map((route) => callSection(route, { components, objects })),
    ...objectSections(objects, components),
  ].join('\n');
}

/** @param elsewhere the pages that describe objects, by anchor. The page of errors links these objects */
function errorPage(components: Components, elsewhere: Map<string, string>): string {
  const overview = ERROR_CODES.map((error) => [
    `[\`${error}\`](#${error.toLowerCase()})`,
    String(ERRORS[error].status),
    ERROR_CONTRACTS[error].retry,
  ]);
  const isCommon = (error: ErrorCode) => COMMON_ERRORS.includes(error as never);
  const section = (error: ErrorCode) => errorSection(error, components);
  const fields = ERROR_CODES.map((error) => ownFields(error, components));
  const own = [...componentsIn(fields, components)].filter((name) => !elsewhere.has(anchor(name)));
  const page = [
    `${WRITTEN}# Errors\n`,
    '[The API](../api.md#errors) says what all errors have in common. Each call names its errors.\n',
    table(['code', 'status', 'retry'], overview),
    '## Errors of every call\n',
    ...ERROR_CODES.filter(isCommon).map(section),
    '## Errors of some calls\n',
    ...ERROR_CODES.filter((error) => !isCommon(error)).map(section),
    ...objectSections(new Set(own), components),
  ].join('\n');
  return page.replace(/\]\(#(\w+)\)/g, (link, name) =>
    elsewhere.has(name) ? `](${elsewhere.get(name)}#${name})` : link,
  );
}

function ownFields(error: ErrorCode, components: Components): JsonSchema {
  const [, { properties, required } = {}] = (components[error]?.allOf ?? []) as JsonSchema[];
  const { type, status, code: _, ...own } = properties as Record<string, JsonSchema>;
  return { properties: own, required };
}

function errorSection(error: ErrorCode, components: Components): string {
  const { retry, when } = ERROR_CONTRACTS[error];
  const shown = ROUTES.flatMap((route) =>
    route.examples.filter(({ answer }) => answer.code === error).map((one) => example(route, one)),
  );
  return [
    `### ${error}\n`,
    `\`${ERRORS[error].status}\`. Retry: ${retry}.\n`,
    `${when}\n`,
    objectTable(ownFields(error, components), components),
    ...shown.slice(0, 1),
  ].join('\n');
}

function objectSections(names: Set<string>, components: Components): string[] {
  const sections = [...names].map((name) => {
    const { description, ...schema } = components[name] ?? {};
    const choices = notNull(schema).flatMap((choice) => referredName(choice) ?? []);
    const links = choices.map((choice) => `[${choice}](#${choice.toLowerCase()})`);
    const fields = links.length > 0 ? `${links.join(' or ')}.\n` : objectTable(schema, components);
    return `### ${name}\n\n${description}\n\n${fields}`;
  });
  return sections.length > 0 ? ['## Objects\n', ...sections] : [];
}

/** The anchor that GitHub gives a heading. */
const anchor = (heading: string) =>
  heading
    .toLowerCase()
    .replace(/[^\w\- ]/g, '')
    .replaceAll(' ', '-');
