/** One text for each address: a client is the same to limits, logs and modules however it came. */
import { isIP, SocketAddress } from 'node:net'

const MAPPED = '::ffff:'

/** IPv6 in its short form, IPv4 out of the IPv6 form that holds it; all else as it is. @source RFC 5952; RFC 4291 section 2.5.5.2 */
export function canonicalAddress(address: string): string {
  if (isIP(address) !== 6) return address
  const text = new SocketAddress({ address, family: 'ipv6' }).address
  return text.startsWith(MAPPED) && text.includes('.') ? text.slice(MAPPED.length) : text
}
