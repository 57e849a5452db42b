/** Address, credentials and limits of a tool server. */
import { createHash } from 'node:crypto'
import type { ReachRules } from '#shared'
import type { McpConfig, ServerConfig } from '../config.ts'

export interface HttpTarget {
  readonly kind: 'http'
  readonly url: URL
  /** `auto`: streamable HTTP, or the older SSE transport if the server does not support it. */
  readonly protocol: 'auto' | 'streamable' | 'sse'
  /** Headers of each request, names in lower case; secrets. */
  readonly headers: ReadonlyMap<string, string>
  readonly rules: ReachRules
  /** PEM file of certificate authorities that replace those of the system; read for each connection. */
  readonly caFile?: string
  readonly oauth?: ServerConfig['oauth']
  /** File with a bearer token; read for each request. */
  readonly tokenFile?: string
  readonly handshake?: ServerConfig['handshake']
}

/** A configured program that serves on standard input and output. */
export interface StdioTarget {
  readonly kind: 'stdio'
  readonly command: string
  readonly args: readonly string[]
  /** In addition to PATH, HOME and similar; no other variables of the gateway are passed on. */
  readonly env: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly handshake?: ServerConfig['handshake']
}

export type ServerTarget = HttpTarget | StdioTarget

export type ConnectionLimits = Pick<
  McpConfig['limits'],
  'connectMs' | 'listMs' | 'callMs' | 'maxCallMs' | 'maxMessageBytes' | 'maxTools' | 'maxOutputBytes'
>

/** Shorter values appear in texts by chance. */
export const MIN_SECRET = 8

/** Configured secrets to redact in texts of the server, which may send them back. */
export function secretsOf(target: ServerTarget): readonly string[] {
  const values =
    target.kind === 'http'
      ? [...target.headers.values(), target.oauth?.clientSecret ?? '', target.oauth?.privateKey ?? '']
      : Object.values(target.env)
  const bare = values.map((value) => value.replace(/^Bearer /i, ''))
  return bare.filter((value) => value.length >= MIN_SECRET)
}

export function redact(text: string, secrets: readonly string[]): string {
  let clean = text
  for (const secret of secrets) if (clean.includes(secret)) clean = clean.replaceAll(secret, '[redacted]')
  return clean
}

/** Redacts secrets in all texts and names of a JSON value; returns the same value if it has none. */
export function redactJson<T>(value: T, secrets: readonly string[]): T {
  if (secrets.length === 0) return value
  const text = JSON.stringify(value)
  const hasSecret = secrets.some((secret) => text.includes(JSON.stringify(secret).slice(1, -1)))
  if (!hasSecret) return value
  return JSON.parse(text, (_name, one: unknown) => {
    if (typeof one === 'string') return redact(one, secrets)
    if (typeof one !== 'object' || one === null || Array.isArray(one)) return one
    return Object.fromEntries(Object.entries(one).map(([name, member]) => [redact(name, secrets), member]))
  }) as T
}

/**
 * Key of a connection: requests share one only if tenant, server and credentials are equal. Contains no secret.
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

/** Cached keys of configured targets. */
const digests = new WeakMap<ServerTarget, string>()

/** Digest of the credentials, which are all in the headers. */
function digestOf(target: ServerTarget): string {
  const hash = createHash('sha256')
  if (target.kind === 'http')
    for (const name of [...target.headers.keys()].sort())
      hash.update(JSON.stringify([name, target.headers.get(name)]))
  return hash.digest('base64url')
}
