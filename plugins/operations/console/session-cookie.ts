/**
 * The session cookie: the credential of the operator, encrypted with a secret that only this gateway has and that ends with it.
 * Each request decrypts and checks it as if it had been sent, so that a session never outlives its key, token or role.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

const NAME = 'weir_session'
const CIPHER = 'aes-256-gcm'
const IV_BYTES = 12
const TAG_BYTES = 16
const EXPIRY_BYTES = 8
export const SECRET_BYTES = 32
/** Browsers drop cookies of more than 4,096 bytes, name and value together. @source RFC 6265 section 6.1 */
export const MAX_CREDENTIAL_BYTES = 3_000

export interface Session {
  /** Unique. */
  readonly id: string
  /** As in the `authorization` header. */
  readonly authorization: string
  /** Milliseconds since 1970. */
  readonly expiresAtMs: number
}

/** @returns the value of the cookie, in the alphabet of base64url */
export function sealSession({ authorization, expiresAtMs }: Omit<Session, 'id'>, secret: Uint8Array): string {
  const iv = randomBytes(IV_BYTES)
  const cipher = createCipheriv(CIPHER, secret, iv)
  const expiry = Buffer.alloc(EXPIRY_BYTES)
  expiry.writeBigUInt64BE(BigInt(expiresAtMs))
  return Buffer.concat([
    iv,
    cipher.update(expiry),
    cipher.update(authorization),
    cipher.final(),
    cipher.getAuthTag(),
  ]).toString('base64url')
}

/** @returns null for a value that this secret has not sealed */
export function openSession(value: string, secret: Uint8Array): Session | null {
  const bytes = Buffer.from(value, 'base64url')
  if (bytes.length < IV_BYTES + EXPIRY_BYTES + TAG_BYTES) return null
  const end = bytes.length - TAG_BYTES
  const decipher = createDecipheriv(CIPHER, secret, bytes.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES })
  decipher.setAuthTag(bytes.subarray(end))
  try {
    const opened = Buffer.concat([decipher.update(bytes.subarray(IV_BYTES, end)), decipher.final()])
    return {
      id: bytes.toString('base64url', 0, IV_BYTES),
      expiresAtMs: Number(opened.readBigUInt64BE()),
      authorization: opened.toString('utf8', EXPIRY_BYTES),
    }
  } catch {
    return null
  }
}

/** Value of the session cookie in a Cookie header; null without one. @source RFC 6265 section 4.2.1 */
export function readCookie(header: string | undefined): string | null {
  for (const pair of header?.split(';') ?? []) {
    const [name, value] = pair.trim().split('=', 2)
    if (name === NAME && value) return value
  }
  return null
}

/** The Set-Cookie header. @param maxAgeSecs 0 removes the cookie */
export function writeCookie(value: string, maxAgeSecs: number, isSecure: boolean): string {
  const attributes = `Path=/; Max-Age=${maxAgeSecs}; HttpOnly; SameSite=Strict`
  return `${NAME}=${value}; ${attributes}${isSecure ? '; Secure' : ''}`
}
