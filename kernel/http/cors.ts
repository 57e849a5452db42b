/** Cross-origin rules: which origins may read responses, and the headers of preflights. */
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

/** @param origins `['*']` allows any, a list only those, `[]` none */
export function createCors(origins: readonly string[]): Cors {
  const allowed = new Set(origins)
  if (origins.includes('*')) return { ...anyOrigin, names: (origin) => allowed.has(origin) }
  return {
    allows: (origin) => allowed.has(origin),
    names: (origin) => allowed.has(origin),
    replyHeaders: (origin) =>
      allowed.has(origin)
        ? [
            'access-control-allow-origin',
            origin,
            'access-control-expose-headers',
            'x-request-id, x-weir-model',
            'vary',
            'origin',
          ]
        : ['vary', 'origin'],
    preflightHeaders: (origin) =>
      allowed.has(origin)
        ? [
            'access-control-allow-origin',
            origin,
            'access-control-allow-methods',
            'GET, POST, PUT, PATCH, DELETE, OPTIONS',
            'access-control-allow-headers',
            'content-type, authorization, x-api-key, x-request-id, anthropic-version, anthropic-beta',
            'access-control-max-age',
            PREFLIGHT_SECONDS,
            'vary',
            'origin',
          ]
        : ['vary', 'origin'],
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
