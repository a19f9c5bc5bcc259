import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { errors, type JWTPayload, jwtVerify, SignJWT } from 'jose';

/** The file that keeps the private key, because `npm start` and `npm run token` are separate processes. */
const KEY_FILE = join('.holdfast', 'issuer.pem');

const ISSUER = 'http://holdfast.localhost/issuer';
const AUDIENCE = 'holdfast';
const ALGORITHM = 'EdDSA';

/** The claims of a token about its caller. */
export interface Claims extends JWTPayload {
  /** Scopes, separated by blanks. */
  scope?: string;
}

/** Issues tokens on this machine, in place of a real issuer. */
export class Issuer {
  readonly #key: KeyObject;

  private constructor(key: KeyObject) {
    this.#key = key;
  }

  /** Reads the private key from the file. If there is no file, creates a key and the file. */
  static async of(file = KEY_FILE): Promise<Issuer> {
    const { privateKey } = generateKeyPairSync('ed25519');
    await mkdir(dirname(file), { recursive: true });
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' });
    // If two processes start at the same time, one of them writes the file, and the other one reads it.
    await writeFile(file, pem, { flag: 'wx', mode: 0o600 }).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
    return new Issuer(createPrivateKey(await readFile(file, 'utf8')));
  }

  /** @param seconds how long the token is valid */
  token(claims: Claims, seconds = 3600): Promise<string> {
    return new SignJWT({ iss: ISSUER, aud: AUDIENCE, ...claims })
      .setProtectedHeader({ alg: ALGORITHM, typ: 'JWT' })
      .setIssuedAt()
      .setExpirationTime(`${seconds}s`)
      .sign(this.#key);
  }

  /** The claims of a token. Undefined if the token is not from this issuer, or has expired. */
  async claimsOf(token: string): Promise<Claims | undefined> {
    try {
      const expected = { issuer: ISSUER, audience: AUDIENCE, algorithms: [ALGORITHM] };
      return (await jwtVerify(token, createPublicKey(this.#key), expected)).payload as Claims;
    } catch (error) {
      if (error instanceof errors.JOSEError) return undefined;
      throw error;
    }
  }
}
