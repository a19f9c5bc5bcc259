import { name, whole } from '../../fields.ts';

export const key = name(1024);
export const leaseId = name(256);
export const ttlSeconds = whole(2, 86_400);
