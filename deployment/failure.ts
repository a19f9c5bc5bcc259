/** Says to the operator why a deployment cannot go on. Nothing was changed unless the message says so. */
export class Refusal extends Error {}
