/** What a request line names. @source RFC 9112 section 3.2 */
import { legacyErrors } from './errors.ts'

export interface Target {
  /** In origin form; `*` for the server as a whole. */
  readonly path: string
  /** Of the absolute form, which wins over the Host header; null otherwise. */
  readonly host: string | null
}

const SCHEME = /^https?:\/\//i
/** Without user information, which has no place in a request. @source RFC 9110 section 4.2.4 */
const AUTHORITY = /^[A-Za-z0-9.\-_~%!$&'()*+,;=:[\]]+$/

/** @throws bad_framing */
export function readTarget(method: string, url: string): Target {
  if (url.startsWith('/')) return { path: url, host: null }
  if (url === '*' && method === 'OPTIONS') return { path: '*', host: null }
  const scheme = SCHEME.exec(url)
  if (scheme === null)
    throw legacyErrors.bad_framing('the request target must be a path or an http or https address')
  const rest = url.slice(scheme[0].length)
  const end = rest.search(/[/?]/)
  const host = end === -1 ? rest : rest.slice(0, end)
  if (!AUTHORITY.test(host)) throw legacyErrors.bad_framing('the request target names no usable host')
  if (end === -1) return { path: method === 'OPTIONS' ? '*' : '/', host }
  return { path: rest[end] === '?' ? `/${rest.slice(end)}` : rest.slice(end), host }
}
