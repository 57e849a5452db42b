/**
 * Text that clients keep for the gateway and cannot read or change: reasoning, and what compaction made of a conversation.
 * AES-256-GCM under the gateway's key, bound to the tenant. @source responses facts 2.4
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { responsesErrors } from '../errors.ts'

export interface SealedText {
  readonly text: string
  /** The vendor's proof of it, where it is reasoning. */
  readonly signature?: string
  /** Where it is a summary: the last item that it stands for. */
  readonly covers?: string
}

/** Opens what was sealed for the tenant. @throws invalid_encrypted_content (400) */
export interface Unsealer {
  open(sealed: string): SealedText
}

const VERSION = 1
const IV_BYTES = 12
const TAG_BYTES = 16
const KEY_BYTES = 32
/** Of a secret that every thread shares, and the state in front of it. */
export const SHARED_KEY_BYTES = 8 + KEY_BYTES

export class TextSeal {
  readonly #key: Buffer

  /** @param key any length; the strength is that of what it holds */
  constructor(key: Buffer) {
    this.#key = Buffer.from(hkdfSync('sha256', key, '', 'weir responses', KEY_BYTES))
  }

  seal(tenant: string, value: SealedText): string {
    const iv = randomBytes(IV_BYTES)
    const cipher = createCipheriv('aes-256-gcm', this.#key, iv, { authTagLength: TAG_BYTES })
    cipher.setAAD(Buffer.from(tenant))
    const sealed = Buffer.concat([cipher.update(JSON.stringify(value), 'utf8'), cipher.final()])
    return Buffer.concat([Buffer.of(VERSION), iv, cipher.getAuthTag(), sealed]).toString('base64url')
  }

  /** @throws invalid_encrypted_content (400) */
  open(tenant: string, sealed: string): SealedText {
    const bytes = Buffer.from(sealed, 'base64url')
    const begin = 1 + IV_BYTES + TAG_BYTES
    if (bytes[0] !== VERSION || bytes.length < begin)
      throw responsesErrors.invalid_encrypted_content.with({ param: 'input' })
    try {
      const iv = bytes.subarray(1, 1 + IV_BYTES)
      const decipher = createDecipheriv('aes-256-gcm', this.#key, iv, { authTagLength: TAG_BYTES })
      decipher.setAAD(Buffer.from(tenant))
      decipher.setAuthTag(bytes.subarray(1 + IV_BYTES, begin))
      const text = Buffer.concat([decipher.update(bytes.subarray(begin)), decipher.final()])
      return JSON.parse(text.toString('utf8')) as SealedText
    } catch (cause) {
      throw responsesErrors.invalid_encrypted_content.with({ param: 'input', cause })
    }
  }
}

/** A key that all threads of this process agree on, made by the first that asks. @param memory zeroed when new */
export function sharedKey(memory: SharedArrayBuffer): Buffer {
  const state = new Int32Array(memory, 0, 1)
  const bytes = new Uint8Array(memory, 8, KEY_BYTES)
  if (Atomics.compareExchange(state, 0, 0, 1) === 0) {
    bytes.set(randomBytes(KEY_BYTES))
    Atomics.store(state, 0, 2)
    Atomics.notify(state, 0)
  }
  while (Atomics.load(state, 0) !== 2) Atomics.wait(state, 0, 1, 100)
  return Buffer.from(bytes.slice())
}
