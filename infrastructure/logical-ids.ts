/** The id that the framework gives a function in the template. @param name as in a file of this folder */
export const lambdaId = (name: string) => `${capital(name)}LambdaFunction`;

export const capital = (name: string) => `${name[0]?.toUpperCase()}${name.slice(1)}`;
