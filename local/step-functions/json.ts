export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
