/** The package has no types of its own. */
declare module 'asl-validator' {
  export default function aslValidator(
    definition: Record<string, unknown>,
    options?: { checkPaths?: boolean; checkArn?: boolean },
  ): { isValid: boolean; errors: { message: string }[]; errorsText(separator?: string): string };
}
