/** The outcome of a request that arrived at second 0: it waited until it began, or until it was refused. */
export interface Request {
  /** When it began and ended its work, in seconds; absent if it never worked. */
  worked?: { from: number; to: number };
  /** The end of a request that did not work, or whose work was stopped. */
  ended?: { at: number; text: string };
}

/** What an operator did while the requests ran. */
export interface Command {
  at: number;
  text: string;
}

interface Played {
  title: string;
  requests: Request[];
  commands: Command[];
}

const [LEFT, ROW, SECOND] = [34, 20, 12];
const SECONDS = 50;
const WIDTH = LEFT + SECONDS * SECOND + 24;

/** Readable on a light and on a dark page, by the colors of the reader's system. */
const STYLE = `
text { font: 12px system-ui, sans-serif; fill: #333 }
.page { fill: #fff } .grid { stroke: #ddd } .wait { fill: #c3cfdd } .work { fill: #2563c9 }
.command { stroke: #b3261e; stroke-dasharray: 4 3 } .ending { fill: #b3261e }
@media (prefers-color-scheme: dark) {
text { fill: #ccc }
.page { fill: #111820 } .grid { stroke: #333c46 } .wait { fill: #4a5868 } .work { fill: #6ea8fe }
.command { stroke: #ff8a80 } .ending { fill: #ff8a80 }
}
`;

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
const number = (length: number) => Math.round(length * 10) / 10;
const x = (second: number) => number(LEFT + second * SECOND);

/** A bar around the middle of a row. */
const bar = (kind: string, [from, to]: [number, number], { middle, height }: { middle: number; height: number }) =>
  to > from
    ? `<rect class="${kind}" x="${x(from)}" y="${middle - height / 2}" width="${number((to - from) * SECOND)}" height="${height}" rx="2"/>`
    : '';

function row({ worked, ended }: Request, no: number, middle: number): string {
  const name = `<text x="12" y="${middle + 4}">${no}</text>`;
  const wait = bar('wait', [0, worked?.from ?? ended?.at ?? SECONDS], { middle, height: 4 });
  const work = worked ? bar('work', [worked.from, worked.to], { middle, height: 14 }) : '';
  const end = ended ? `<text x="${x(ended.at) + 5}" y="${middle + 4}">${escaped(ended.text)}</text>` : '';
  return [name, wait, work, end].filter(Boolean).join('\n');
}

/** An SVG with a row for each request: thin while the request waits, thick while it works. */
export function pictureOf({ title, requests, commands }: Played): string {
  const top = commands.length > 0 ? 26 : 8;
  const bottom = top + requests.length * ROW;
  const height = bottom + 24;
  const axis = Array.from({ length: SECONDS / 10 + 1 }, (_, at) => at * 10).map(
    (second) =>
      `<line class="grid" x1="${x(second)}" x2="${x(second)}" y1="${top}" y2="${bottom}"/>
<text x="${x(second)}" y="${bottom + 16}" text-anchor="middle">${second} s</text>`,
  );
  const rows = requests.map((request, at) => row(request, at + 1, top + at * ROW + ROW / 2));
  const lines = commands.map(
    ({ at, text }) =>
      `<line class="command" x1="${x(at)}" x2="${x(at)}" y1="${top - 4}" y2="${bottom}"/>
<text class="ending" x="${x(at)}" y="${top - 9}" text-anchor="middle">${escaped(text)}</text>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img">
<title>${escaped(title)}</title>
<style>${STYLE}</style>
<rect class="page" width="${WIDTH}" height="${height}" rx="6"/>
${[...axis, ...rows, ...lines].join('\n')}
</svg>
`;
}
