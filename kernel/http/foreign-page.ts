/**
 * Detects requests that a page of another site sends from an operator's browser. Without keys, such a page could use the
 * control plane, because a form post needs no CORS preflight.
 * @source Fetch standard, `Origin`; RFC 9110 section 7.2
 */

/**
 * @param origin as received; undefined for clients other than browsers, and for plain reads
 * @param host as received
 * @param isNamed whether the configuration names the origin
 * @param isLocal the gateway listens on loopback only: a host name that is no address then belongs to a page whose owner
 *   resolves it to this machine (DNS rebinding), and which reads without an `Origin`
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
