import type { Item } from '../aws/dynamodb.ts';
import type { Margins, Places } from './dependencies.ts';
import type { ExpiredRow, Kind } from './rows.ts';

/** How expired records of one table are found, told and recognised. */
export interface TableSource {
  /** The table; undefined where the deployment has none. */
  table(places: Places): string | undefined;
  kinds: readonly Kind[];
  /** The key's attributes. */
  key: readonly string[];
  /** What is read of each row besides the key: never a secret. */
  attributes: readonly string[];
  /** What else the filter names. */
  filtered: readonly string[];
  /** Attribute names with a # before each. */
  filter: string;
  values(now: number, margins: Margins): Item;
  /** @param item what the filter let through */
  row(item: Item, now: number, margins: Margins): ExpiredRow;
  /** What must still hold of a record besides its identity, so that deleting it hurts nobody. */
  deletable(kind: Kind): string | undefined;
}
