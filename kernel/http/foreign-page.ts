/**
 * Tells requests that a page of somebody else's site makes in an operator's browser. Without keys nothing but this keeps
 * such a page from the control plane: a form post needs no leave of ours.
 * @source Fetch standard, `Origin`; RFC 9110 section 7.2
 */

/**
 * @param origin as received; undefined when the request is no browser's, or a plain read
 * @param host as received
 * @param isNamed whether the configuration names the origin
 * @param isLocal the gateway listens to this machine only: whoever says another name than an address is a page whose
 *   owner has pointed its name here, since such a page reads without an `Origin`
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
  // A name that its owner points here for a while would make any page one of our own.
  return !isAddress(own.hostname)
}

function isForeignName(host: string | undefined, isNamed: (origin: string) => boolean): boolean {
  if (host === undefined || isNamed(`http://${host}`) || isNamed(`https://${host}`)) return false
  const own = URL.parse(`http://${host}`)
  return own === null || !isAddress(own.hostname)
}

/** Of this machine, or one that can be listened at. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.')
}

function isAddress(host: string): boolean {
  if (host === 'localhost' || host.endsWith('.localhost') || host.startsWith('[')) return true
  const parts = host.split('.')
  return parts.length === 4 && parts.every((part) => part !== '' && Number(part) >= 0 && Number(part) <= 255)
}
