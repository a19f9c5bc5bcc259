import type { IncomingMessage, ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { type Listening, listen } from '../../local/listen.ts';
import { type Answer, gatewayError, pass, reply } from './passing.ts';

/** The share of requests that each fault strikes. All other requests pass. */
const FAULTS = {
  /** The request neither arrives nor is answered. */
  dropped: 0.02,
  /** The request takes effect, and its answer is lost. */
  lostAnswer: 0.02,
  /** The connection is cut before the request arrives, or after. */
  cutBefore: 0.04,
  cutAfter: 0.04,
  lateRequest: 0.06,
  lateAnswer: 0.06,
  /** The request arrives twice. */
  duplicate: 0.05,
  unavailable: 0.03,
  /** The request takes effect, and the gateway answers 504. */
  timedOut: 0.03,
};

type Fault = keyof typeof FAULTS;

/** Shorter than a client waits for an acquisition. A later grant would not reach its client. */
const LATE_MS = 2500;

export interface FaultyProxy extends Listening {
  struck: Record<Fault, number>;
  /** Fences that only a second copy of a request was granted. */
  copies: Set<number>;
  /** The key and the holder of each acquisition that arrived twice, so that its second copy may wait in line by itself. */
  copied: Set<string>;
  /** From now on everything goes through. */
  calm(): void;
}

/** Names the acquisitions of a holder on a key. */
export const copyOf = ({ key, holder }: { key: string; holder: string | null }): string => `${key} ${holder}`;

/** Passes requests on, and strikes some of them with a fault. @param random numbers in [0, 1) */
export async function startProxy(target: string, random: () => number): Promise<FaultyProxy> {
  const struck = Object.fromEntries(Object.keys(FAULTS).map((fault) => [fault, 0])) as Record<Fault, number>;
  const [copies, copied] = [new Set<number>(), new Set<string>()];
  let calm = false;

  const draw = (): Fault | undefined => {
    let left = calm ? 1 : random();
    for (const [fault, chance] of Object.entries(FAULTS) as [Fault, number][]) {
      left -= chance;
      if (left < 0) {
        struck[fault]++;
        return fault;
      }
    }
    return undefined;
  };

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await buffer(request);
    const { url = '' } = request;
    const passed = () => pass(target, request, body);
    switch (draw()) {
      case 'dropped':
        return;
      case 'lostAnswer':
        await passed();
        return;
      case 'cutBefore':
        request.socket.destroy();
        return;
      case 'cutAfter':
        await passed();
        request.socket.destroy();
        return;
      case 'lateRequest':
        await delay(random() * LATE_MS);
        return reply(response, await passed());
      case 'lateAnswer': {
        const answer = await passed();
        await delay(random() * LATE_MS);
        return reply(response, answer);
      }
      case 'duplicate': {
        if (url.endsWith('/acquire')) copied.add(copyOf(JSON.parse(String(body))));
        const [answer] = await Promise.all([
          passed(),
          delay(random() * 300)
            .then(passed)
            .then(note),
        ]);
        return reply(response, answer);
      }
      case 'unavailable':
        return reply(response, gatewayError(503));
      case 'timedOut':
        await passed();
        return reply(response, gatewayError(504));
      default:
        return reply(response, await passed());
    }
  };

  /** Notes a grant to the copy. If the copy comes after the release of the first request, it is granted only if others held the lease in between. */
  const note = ({ text }: Answer) => {
    const { fence, repeated } = JSON.parse(text) as { fence?: number; repeated?: boolean };
    if (fence !== undefined && repeated === false) copies.add(fence);
  };

  const listening = await listen((request, response) => {
    handle(request, response).catch(() => request.socket.destroy()); // a killed process disconnects
  });
  return {
    ...listening,
    struck,
    copies,
    copied,
    calm: () => {
      calm = true;
    },
  };
}
