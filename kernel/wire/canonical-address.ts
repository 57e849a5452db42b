/** Canonical text of IP addresses, so that a client has one address in limits, logs and modules. */
import { isIP, SocketAddress } from 'node:net'

const MAPPED = '::ffff:'

/** IPv6 in short form, IPv4-mapped IPv6 as IPv4; any other text unchanged. @source RFC 5952; RFC 4291 section 2.5.5.2 */
export function canonicalAddress(address: string): string {
  if (isIP(address) !== 6) return address
  const text = new SocketAddress({ address, family: 'ipv6' }).address
  return text.startsWith(MAPPED) && text.includes('.') ? text.slice(MAPPED.length) : text
}
