/**
 * Tells requests that a page of somebody else's site makes in an operator's browser. Without keys nothing but this keeps
 * such a page from the control plane: a form post needs no leave of ours.
 * @source Fetch standard, `Origin`; RFC 9110 section 7.2
 */

/**
 * @param origin as received; undefined when the request is no browser's, or a plain read
 * @param host as received
 * @param isNamed whether the configuration names the origin
 */
export function isForeignPage(
  origin: string | undefined,
  host: string | undefined,
  isNamed: (origin: string) => boolean,
): boolean {
  if (origin === undefined || isNamed(origin)) return false
  const page = URL.parse(origin)
  const own = URL.parse(`http://${host ?? ''}`)
  if (page === null || own === null || page.host !== own.host) return true
  // A name that its owner points here for a while would make any page one of our own.
  return !isAddress(own.hostname)
}

function isAddress(host: string): boolean {
  if (host === 'localhost' || host.endsWith('.localhost') || host.startsWith('[')) return true
  const parts = host.split('.')
  return parts.length === 4 && parts.every((part) => part !== '' && Number(part) >= 0 && Number(part) <= 255)
}
