/** The part of an object in the emulator's store that a listing needs. */
interface Listed {
  key: string;
}

interface ListOptions {
  prefix?: string;
  delimiter?: string;
  maxKeys?: number;
  startAfter?: string;
  marker?: string;
}

interface Page {
  objects: Listed[];
  commonPrefixes: string[];
  isTruncated: boolean;
}

/** The part of the emulator's store that a listing needs. */
export interface ListingStore {
  buckets: Map<string, Map<string, object>>;
  listObjects(bucket: string, options?: ListOptions): Page;
}

const byBytes = (left: string, right: string) => Buffer.compare(Buffer.from(left), Buffer.from(right));

/**
 * Makes a store list keys in the order of their UTF-8 bytes, as S3 does. The emulator itself uses the order of a language. Readers of a Delta log rely on
 * the order that S3 uses, because `_last_checkpoint` is in the same folder as the numbered files.
 */
export function listByBytes(store: ListingStore): void {
  const listAsEmulator = store.listObjects.bind(store);
  store.listObjects = (bucket, options = {}) => {
    const objects = store.buckets.get(bucket) as Map<string, Listed> | undefined;
    return objects ? page([...objects.values()], options) : listAsEmulator(bucket, options); // the emulator answers that the bucket is missing
  };
}

function page(all: Listed[], { prefix = '', delimiter, maxKeys = 1000, startAfter, marker }: ListOptions): Page {
  const after = startAfter ?? marker ?? '';
  const objects: Listed[] = [];
  let commonPrefixes: string[] = [];
  const listed = all.filter(({ key }) => key.startsWith(prefix)).sort((a, b) => byBytes(a.key, b.key));
  for (const object of listed) {
    const group = groupOf(object.key, prefix, delimiter);
    const name = group ?? object.key;
    if ((after !== '' && byBytes(name, after) <= 0) || (group !== undefined && commonPrefixes.includes(group)))
      continue;
    if (objects.length + commonPrefixes.length >= maxKeys) {
      // The emulator continues after the last object of a page. Groups after that object would be listed twice.
      const last = objects.at(-1);
      if (last) commonPrefixes = commonPrefixes.filter((one) => byBytes(one, last.key) < 0);
      return { objects, commonPrefixes, isTruncated: true };
    }
    if (group === undefined) objects.push(object);
    else commonPrefixes.push(group);
  }
  return { objects, commonPrefixes, isTruncated: false };
}

/** The group under which a key is listed, up to the next delimiter. Undefined if the key itself is listed. */
function groupOf(key: string, prefix: string, delimiter: string | undefined): string | undefined {
  const end = delimiter ? key.indexOf(delimiter, prefix.length) : -1;
  return end < 0 ? undefined : key.slice(0, end + (delimiter ?? '').length);
}
