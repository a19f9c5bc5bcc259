/** Why a deployment cannot go on, in words for whoever started it. Nothing was changed unless the message says so. */
export class Refusal extends Error {}
