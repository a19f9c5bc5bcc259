/** An error answer of Lambda's API, with its name on the wire. */
export class LambdaError extends Error {
  readonly status: number;

  constructor(name: string, message: string, status = 400) {
    super(message);
    this.name = name;
    this.status = status;
  }
}

export const invalid = (message: string) => new LambdaError('InvalidParameterValueException', message);

export const notFound = (message: string) => new LambdaError('ResourceNotFoundException', message, 404);
