/**
 * Encrypts text that clients store for the gateway: reasoning and summaries of compactions. AES-256-GCM under the gateway's
 * key, bound to the tenant.
 */
import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { responsesErrors } from '../../errors.ts'

export interface SealedText {
  readonly text: string
  /** The vendor's signature of reasoning. */
  readonly signature?: string
  /** Id of the last item that a summary covers. */
  readonly covers?: string
}

/** Decrypts text of the tenant; null for text of another tenant or gateway, or that was changed. */
export interface Unsealer {
  open(sealed: string): SealedText | null
}

const VERSION = 1
const IV_BYTES = 12
const TAG_BYTES = 16
const KEY_BYTES = 32

export class TextSeal {
  #keys: readonly Buffer[] = []

  /**
   * Call before the first use, and when the keys change.
   * @param keys of any length; the first one encrypts, all of them decrypt
   */
  useKeys(keys: readonly Buffer[]): void {
    this.#keys = keys.map((key) => Buffer.from(hkdfSync('sha256', key, '', 'weir responses', KEY_BYTES)))
  }

  seal(tenant: string, value: SealedText): string {
    const iv = randomBytes(IV_BYTES)
    const cipher = createCipheriv('aes-256-gcm', this.#keys[0], iv, { authTagLength: TAG_BYTES })
    cipher.setAAD(Buffer.from(tenant))
    const sealed = Buffer.concat([cipher.update(JSON.stringify(value), 'utf8'), cipher.final()])
    return Buffer.concat([Buffer.of(VERSION), iv, cipher.getAuthTag(), sealed]).toString('base64url')
  }

  /** As `Unsealer.open`. */
  open(tenant: string, sealed: string): SealedText | null {
    const bytes = Buffer.from(sealed, 'base64url')
    if (bytes[0] !== VERSION || bytes.length < 1 + IV_BYTES + TAG_BYTES) return null
    for (const key of this.#keys) {
      const text = decrypt(key, tenant, bytes)
      if (text !== null) return JSON.parse(text) as SealedText
    }
    return null
  }
}

/** Null for another key or tenant, or changed bytes. */
function decrypt(key: Buffer, tenant: string, bytes: Buffer): string | null {
  const begin = 1 + IV_BYTES + TAG_BYTES
  const iv = bytes.subarray(1, 1 + IV_BYTES)
  const decipher = createDecipheriv('aes-256-gcm', key, iv, { authTagLength: TAG_BYTES })
  decipher.setAAD(Buffer.from(tenant))
  decipher.setAuthTag(bytes.subarray(1 + IV_BYTES, begin))
  const text = decipher.update(bytes.subarray(begin))
  try {
    return Buffer.concat([text, decipher.final()]).toString('utf8')
  } catch {
    return null
  }
}

/** For text without which the request cannot be served. @throws invalid_encrypted_content (400) for null */
export function requireOpened(text: SealedText | null): SealedText {
  if (text === null) throw responsesErrors.invalid_encrypted_content.with({ param: 'input' })
  return text
}

/** True for text of any gateway, tenant and key; other services have other formats. */
export function isSealedHere(sealed: string): boolean {
  return Buffer.from(sealed.slice(0, 4), 'base64url')[0] === VERSION
}
