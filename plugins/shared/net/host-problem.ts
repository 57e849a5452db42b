/** What is wrong with an address to listen on that no name could have. */
import { isIPv6 } from 'node:net'

/** @returns for the operator; null when it may be an address */
export function hostProblem(host: string): string | null {
  if (isIPv6(host)) return null
  if (host === '') return 'must not be empty'
  if (host.includes('/')) return 'must be an address to listen on, not a URL'
  if (host.startsWith('[')) return 'must be written without brackets'
  if (host.includes(':')) return 'must be an address without a port; the port is a setting of its own'
  return /\s/.test(host) ? 'must hold no blanks' : null
}
