// Draws charts as SVG. Standard input is a list [{file, spec, digest}] with specs of Vega-Lite.
import { writeFile } from 'node:fs/promises';
import { json } from 'node:stream/consumers';
import { parse, View } from 'vega';
import { compile } from 'vega-lite';

for (const { file, spec, digest } of await json(process.stdin)) {
  const view = new View(parse(compile(spec).spec), { renderer: 'none' });
  await writeFile(file, `${await view.toSVG()}\n<!-- figures: ${digest} -->\n`);
}
