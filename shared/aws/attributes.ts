/** A string attribute. */
export const text = (value: string) => ({ S: value });

/** A number attribute that holds a whole number. */
export const integer = (value: number) => ({ N: String(value) });
