/** Validation and normal form of worker URLs. */
import { trimSlashes } from '#shared'
import { workerErrors } from './errors.ts'

/** Every thread holds every URL. */
const MAX_URL_LENGTH = 2_048

/** The scheme alone decides the connection mode; the `connection_mode` field is only checked. */
const SCHEME = /^([a-z][a-z0-9+.-]{0,63}):\/\//

/**
 * Rejects credentials, since URLs are shown in logs and metrics, and query and fragment, since paths are appended to
 * the URL.
 *
 * @throws invalid_worker_url (400)
 */
export function checkWorkerUrl(url: string): void {
  if (url === '') throw invalid('is empty')
  if (url.length > MAX_URL_LENGTH) throw invalid(`must have at most ${MAX_URL_LENGTH} characters`)
  const scheme = SCHEME.exec(url)
  if (scheme === null) throw invalid('must begin with a scheme in lower case, such as http://')
  if (/[\s\\]/.test(url)) throw invalid('must not contain spaces or backslashes')
  // Parsed as http so that the host rules of web addresses hold for every scheme.
  const parsed = URL.parse(`http://${url.slice(scheme[0].length)}`)
  if (parsed === null || parsed.hostname === '' || url.slice(scheme[0].length).startsWith('/')) {
    throw invalid('has no valid host and port')
  }
  if (parsed.username !== '' || parsed.password !== '') {
    throw invalid('must not contain credentials; use api_key')
  }
  if (/[?#]/.test(url)) throw invalid('must not have a query or a fragment')
}

/** Without the colon; empty if there is none. */
export function schemeOf(url: string): string {
  return SCHEME.exec(url)?.[1] ?? ''
}

/**
 * Normal form of a worker URL: ignores the case of the host, a default port, and slashes or `/v1` at the end. Only for
 * URLs that `checkWorkerUrl` accepts.
 */
export function workerKey(url: string): string {
  const [whole, scheme] = SCHEME.exec(url) ?? ['', '']
  const parsed = URL.parse(`${scheme.endsWith('s') ? 'https' : 'http'}://${url.slice(whole.length)}`)
  if (parsed === null) return url
  return `${scheme}://${parsed.host}${withoutVersion(parsed.pathname)}`
}

function withoutVersion(path: string): string {
  let rest = trimSlashes(path)
  while (rest.endsWith('/v1')) rest = trimSlashes(rest.slice(0, -'/v1'.length))
  return rest
}

function invalid(problem: string) {
  return workerErrors.invalid_worker_url.with({ param: 'url' }, problem)
}
