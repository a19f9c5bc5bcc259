import { invalidRequest } from './errors.ts';

/** Where a listing goes on: opaque to callers, and no secret. */
export const encodeCursor = (position: Record<string, string>): string =>
  Buffer.from(JSON.stringify(position)).toString('base64url');

/** @throws HoldfastError InvalidRequest unless the cursor holds exactly the named strings, none of them empty */
export function decodeCursor<Name extends string>(cursor: string, names: readonly Name[]): Record<Name, string> {
  const position = parse(cursor);
  const known =
    typeof position === 'object' &&
    position !== null &&
    Object.keys(position).length === names.length &&
    names.every((name) => typeof Reflect.get(position, name) === 'string' && Reflect.get(position, name) !== '');
  if (!known) throw invalidRequest([{ path: 'cursor', message: 'is not one that this listing gave' }]);
  return position as Record<Name, string>;
}

function parse(cursor: string): unknown {
  try {
    return JSON.parse(Buffer.from(cursor, 'base64url').toString());
  } catch {
    return undefined;
  }
}
