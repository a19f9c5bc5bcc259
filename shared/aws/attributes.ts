/** A string attribute. @public */
export const text = (value: string) => ({ S: value });

/** A number attribute that holds a whole number. @public */
export const integer = (value: number) => ({ N: String(value) });
