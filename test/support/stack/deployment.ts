import type { Observer } from '../../../deployment/deploy.ts';
import type { Order } from '../../../deployment/request.ts';
import { released } from './template.ts';

/** A deployment of the stage `prod` that sets nothing. */
export const ORDER: Order = {
  stage: 'prod',
  given: {},
  reset: [],
  tags: [],
  untag: [],
  allowedChanges: [],
  mayCreate: true,
  isPlan: false,
};

/** The release, without the code of the functions. */
export const artifact = { template: released, templateText: JSON.stringify(released), zips: new Map<string, Buffer>() };

/** An operator who consents, and reads into `said`. */
export const consenting = (said: string[]): Observer => ({
  say: (line) => void said.push(line),
  onChanges: (changes, isNew) => void said.push(`${changes.length > 0 ? 'changes' : 'none'}, ${isNew ? 'new' : 'old'}`),
  onEvent: () => {},
  confirm: async () => true,
});
