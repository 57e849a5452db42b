/** Checks the setting of an address to listen on. */
import { isIPv6 } from 'node:net'

/** @returns the problem; null if the text may be an address or a host name */
export function hostProblem(host: string): string | null {
  if (isIPv6(host)) return null
  if (host === '') return 'must not be empty'
  if (host.includes('/')) return 'must be an address to listen on, not a URL'
  if (host.startsWith('[')) return 'must be written without brackets'
  if (host.includes(':')) return 'must be an address without a port; set the port separately'
  return /\s/.test(host) ? 'must not contain spaces' : null
}
