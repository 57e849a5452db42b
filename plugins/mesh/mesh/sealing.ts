/** Encrypts secrets of records with the secret of the mesh: AES-256-GCM, bound to what they belong to. */
import { createCipheriv, createDecipheriv, createHmac, randomBytes, scryptSync } from 'node:crypto'
import { meshErrors } from './errors.ts'

const ALGORITHM = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16
const VERSION = 'v1.'

export class Sealing {
  readonly #secret: string | null
  readonly #mesh: string
  #key: Buffer | null = null

  /** @param secret null without an engine, which seals nothing */
  constructor(secret: string | null, mesh: string) {
    this.#secret = secret
    this.#mesh = mesh
  }

  seal(text: string, context: string): string {
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(ALGORITHM, this.#derive(), nonce)
    cipher.setAAD(Buffer.from(context))
    const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
    return VERSION + Buffer.concat([nonce, cipher.getAuthTag(), body]).toString('base64url')
  }

  /** @throws mesh_secret_mismatch */
  open(sealed: string, context: string): string {
    const bytes = Buffer.from(sealed.slice(VERSION.length), 'base64url')
    try {
      // Without the length, a shorter tag, which can be guessed, would be accepted.
      const decipher = createDecipheriv(ALGORITHM, this.#derive(), bytes.subarray(0, NONCE_BYTES), {
        authTagLength: TAG_BYTES,
      })
      decipher.setAAD(Buffer.from(context))
      decipher.setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES))
      const body = bytes.subarray(NONCE_BYTES + TAG_BYTES)
      return Buffer.concat([decipher.update(body), decipher.final()]).toString('utf8')
    } catch (cause) {
      throw meshErrors.mesh_secret_mismatch.with({ cause })
    }
  }

  /** A key of its own for another purpose. */
  keyFor(purpose: string): Buffer {
    return createHmac('sha256', this.#derive()).update(purpose).digest()
  }

  /** Derived once, about 50 ms. */
  #derive(): Buffer {
    if (this.#secret === null) throw meshErrors.mesh_secret_missing()
    this.#key ??= scryptSync(this.#secret, `weir mesh ${this.#mesh}`, 32)
    return this.#key
  }
}
