/** Where a tool server is and what it is told about us: all that a connection needs to know. */
import { createHash } from 'node:crypto'
import type { ReachRules } from '../net/reach-rules.ts'

export interface HttpTarget {
  readonly kind: 'http'
  readonly url: URL
  /** `auto`: streamable HTTP, and the older event stream where the server does not know it. */
  readonly protocol: 'auto' | 'streamable' | 'sse'
  /** Sent with each request, names lower-case; secrets. */
  readonly headers: ReadonlyMap<string, string>
  readonly rules: ReachRules
  /** PEM file of authorities to trust in place of the system's; read for each connection. */
  readonly caFile?: string
  readonly oauth?: OauthClient
}

/** The gateway's own account with an authorization server. */
export interface OauthClient {
  readonly clientId: string
  /** Either this or a key. */
  readonly clientSecret?: string
  /** PEM; signs assertions in place of a secret. */
  readonly privateKey?: string
  readonly algorithm: string
  /** Secret and assertions go to this authorization server and to no other. */
  readonly issuer: string
  readonly scope?: string
}

/** A program that the operator named; it speaks on its standard input and output. */
export interface StdioTarget {
  readonly kind: 'stdio'
  readonly command: string
  readonly args: readonly string[]
  /** Beside PATH, HOME and the like; nothing else of the gateway's environment is passed on. */
  readonly env: Readonly<Record<string, string>>
  readonly cwd?: string
}

export type ServerTarget = HttpTarget | StdioTarget

/** Limits of one connection. */
export interface ConnectionLimits {
  readonly connectMs: number
  readonly listMs: number
  readonly callMs: number
  /** Bytes of one message of the server. */
  readonly maxMessageBytes: number
  readonly maxTools: number
  /** Bytes of the text that a call gives the model; the rest is cut off, with a mark. */
  readonly maxOutputBytes: number
}

/** What must never be seen again in a text of the server: it may send back what it was sent. */
export function secretsOf(target: ServerTarget): readonly string[] {
  const values =
    target.kind === 'http'
      ? [...target.headers.values(), target.oauth?.clientSecret ?? '', target.oauth?.privateKey ?? '']
      : Object.values(target.env)
  const bare = values.map((value) => value.replace(/^Bearer /i, ''))
  return bare.filter((value) => value.length >= 8)
}

/** Replaces secrets by a mark. */
export function redact(text: string, secrets: readonly string[]): string {
  let clean = text
  for (const secret of secrets) if (clean.includes(secret)) clean = clean.replaceAll(secret, '[redacted]')
  return clean
}

/** The same for all texts and names of a value out of JSON; the value itself where it holds no secret. */
export function redactJson<T>(value: T, secrets: readonly string[]): T {
  if (secrets.length === 0) return value
  const text = JSON.stringify(value)
  const isTold = secrets.some((secret) => text.includes(JSON.stringify(secret).slice(1, -1)))
  if (!isTold) return value
  return JSON.parse(text, (_name, one: unknown) => {
    if (typeof one === 'string') return redact(one, secrets)
    if (typeof one !== 'object' || one === null || Array.isArray(one)) return one
    return Object.fromEntries(Object.entries(one).map(([name, member]) => [redact(name, secrets), member]))
  }) as T
}

/**
 * Names a connection: two requests share one only when tenant, place and credentials are the same. Holds no secret.
 * @param tenant null for servers that all tenants share
 */
export function connectionKey(tenant: string | null, place: string, target: ServerTarget): string {
  let digest = digests.get(target)
  if (digest === undefined) {
    digest = digestOf(target)
    digests.set(target, digest)
  }
  return JSON.stringify([tenant, place, digest])
}

/** Of targets that live on, which are those of the configuration. */
const digests = new WeakMap<ServerTarget, string>()

/** Of the credentials, which are all in the headers. */
function digestOf(target: ServerTarget): string {
  const hash = createHash('sha256')
  if (target.kind === 'http')
    for (const name of [...target.headers.keys()].sort())
      hash.update(JSON.stringify([name, target.headers.get(name)]))
  return hash.digest('base64url')
}
