/** The id that the framework gives a function in the template. @param name as in a file of this folder */
export const lambdaId = (name: string) => `${capital(name)}LambdaFunction`;

export const capital = (name: string) => `${name[0]?.toUpperCase()}${name.slice(1)}`;

/** The id of the resource that refuses changes of guarded parameters. */
export const GUARD = 'ChangeGuard';
