/**
 * Origins of pages: which of them may read responses, and which requests come from a page of another site.
 */
import type { ExtraHeaders } from '../contracts/request.ts'

const PREFLIGHT_SECONDS = '3600'

export interface Cors {
  /** Headers of a response to a request with this Origin. */
  replyHeaders(origin: string): ExtraHeaders
  preflightHeaders(origin: string): ExtraHeaders
  /** True when pages of this Origin may read responses. */
  allows(origin: string): boolean
  /** True when the configuration names this Origin, not just any. */
  names(origin: string): boolean
}

const VARY = ['vary', 'origin']
const EXPOSED = ['access-control-expose-headers', 'x-request-id, x-weir-model']
const PREFLIGHT = [
  'access-control-allow-methods',
  'GET, POST, PUT, PATCH, DELETE, OPTIONS',
  'access-control-allow-headers',
  'content-type, authorization, x-api-key, x-request-id, anthropic-version, anthropic-beta',
  'access-control-max-age',
  PREFLIGHT_SECONDS,
]

/** @param origins `['*']` allows any, a list only those, `[]` none */
export function createCors(origins: readonly string[]): Cors {
  const named = new Set(origins)
  const names = (origin: string) => named.has(origin)
  if (names('*')) return { ...anyOrigin, names }
  const headersFor = (origin: string, headers: readonly string[]): ExtraHeaders =>
    names(origin) ? ['access-control-allow-origin', origin, ...headers, ...VARY] : VARY
  return {
    names,
    allows: names,
    replyHeaders: (origin) => headersFor(origin, EXPOSED),
    preflightHeaders: (origin) => headersFor(origin, PREFLIGHT),
  }
}

const anyOrigin: Omit<Cors, 'names'> = {
  allows: () => true,
  replyHeaders: () => ['access-control-allow-origin', '*', 'access-control-expose-headers', '*'],
  preflightHeaders: () => [
    'access-control-allow-origin',
    '*',
    'access-control-allow-methods',
    '*',
    'access-control-allow-headers',
    // The wildcard does not cover authorization (Fetch standard), so it is named.
    '*, authorization',
    'access-control-max-age',
    PREFLIGHT_SECONDS,
  ],
}

/**
 * Detects requests that a page of another site sends from an operator's browser. Without keys, such a page could use the
 * control plane, because a form post needs no CORS preflight.
 *
 * @param origin as received; undefined for clients other than browsers, and for plain reads
 * @param host as received
 * @param isNamed whether the configuration names the origin
 * @param isLocal the gateway listens on loopback only: a host name that is no address then belongs to a page whose owner
 *   resolves it to this machine (DNS rebinding), and which reads without an `Origin`
 * @source Fetch standard, `Origin`; RFC 9110 section 7.2
 */
export function isForeignPage(
  origin: string | undefined,
  host: string | undefined,
  isNamed: (origin: string) => boolean,
  isLocal: boolean,
): boolean {
  if (origin === undefined) return isLocal && isForeignName(host, isNamed)
  if (isNamed(origin)) return false
  const page = URL.parse(origin)
  const own = URL.parse(`http://${host ?? ''}`)
  if (page === null || own === null || page.host !== own.host) return true
  // DNS rebinding: a name that its owner resolves to this gateway would make any page same-origin.
  return !isAddress(own.hostname)
}

function isForeignName(host: string | undefined, isNamed: (origin: string) => boolean): boolean {
  if (host === undefined || isNamed(`http://${host}`) || isNamed(`https://${host}`)) return false
  const own = URL.parse(`http://${host}`)
  return own === null || !isAddress(own.hostname)
}

/** An address of this machine alone. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}

function isAddress(host: string): boolean {
  if (host === 'localhost' || host.endsWith('.localhost') || host.startsWith('[')) return true
  const parts = host.split('.')
  return parts.length === 4 && parts.every((part) => part !== '' && Number(part) >= 0 && Number(part) <= 255)
}
