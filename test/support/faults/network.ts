/** An error as Node makes it. */
export const networkError = (code: string, syscall: string): Error =>
  Object.assign(new Error(`${syscall} ${code}`), { code, syscall });

/** An error as the SDK makes it from a service's answer. */
export const serviceError = (name: string, httpStatusCode: number): Error =>
  Object.assign(new Error(name), { name, $metadata: { httpStatusCode } });
