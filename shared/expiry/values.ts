export const text = (value: string) => ({ S: value });
export const integer = (value: number) => ({ N: String(value) });
