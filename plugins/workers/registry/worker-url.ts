/** What a worker's URL must look like, and what it says about the way to the worker. */
import { trimSlashes } from '#shared'
import { workerErrors } from './errors.ts'

/** Every thread holds every URL, and it is shown everywhere. */
const MAX_URL_LENGTH = 2_048

/** It alone decides the connection mode; the `connection_mode` field is only checked. */
const SCHEME = /^([a-z][a-z0-9+.-]{0,63}):\/\//

/**
 * Names and passwords in the URL are refused because a URL is shown everywhere and a secret must not be; query and
 * fragment because paths are appended to it.
 *
 * @throws invalid_worker_url (400)
 */
export function checkWorkerUrl(url: string): void {
  if (url === '') throw invalid('is empty')
  if (url.length > MAX_URL_LENGTH) throw invalid(`must have at most ${MAX_URL_LENGTH} characters`)
  const scheme = SCHEME.exec(url)
  if (scheme === null) throw invalid('must begin with a scheme in lower case, such as http://')
  if (/[\s\\]/.test(url)) throw invalid('must not hold spaces or backslashes')
  // Parsed as http so that the host rules of web addresses hold for every scheme.
  const parsed = URL.parse(`http://${url.slice(scheme[0].length)}`)
  if (parsed === null || parsed.hostname === '' || url.slice(scheme[0].length).startsWith('/')) {
    throw invalid('has no valid host and port')
  }
  if (parsed.username !== '' || parsed.password !== '') {
    throw invalid('must not hold credentials; use api_key')
  }
  if (/[?#]/.test(url)) throw invalid('must not have a query or a fragment')
}

/** Without colon; empty when there is none. */
export function schemeOf(url: string): string {
  return SCHEME.exec(url)?.[1] ?? ''
}

/**
 * The same text for every spelling of one worker's URL: case of the host, a default port, a slash or `/v1` at the end
 * make no other worker. Only for URLs that `checkWorkerUrl` takes.
 */
export function workerKey(url: string): string {
  const [whole, scheme] = SCHEME.exec(url) ?? ['', '']
  const parsed = URL.parse(`${scheme.endsWith('s') ? 'https' : 'http'}://${url.slice(whole.length)}`)
  if (parsed === null) return url
  return `${scheme}://${parsed.host}${withoutVersion(parsed.pathname)}`
}

/** Without slashes and `/v1` at the end, however many. */
function withoutVersion(path: string): string {
  let rest = trimSlashes(path)
  while (rest.endsWith('/v1')) rest = trimSlashes(rest.slice(0, -'/v1'.length))
  return rest
}

function invalid(problem: string) {
  return workerErrors.invalid_worker_url.with({ param: 'url' }, problem)
}
