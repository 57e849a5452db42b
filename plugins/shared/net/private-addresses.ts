/** Detects private and special-purpose addresses, to which requests for client-supplied URLs must not go. */
import { BlockList, isIP } from 'node:net'

/** IPv4 blocks that are not public unicast. @source IANA special-purpose registry, RFC 6890 */
const PRIVATE_V4: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
]

/** Public unicast of IPv6, except the blocks below. */
const GLOBAL_V6: readonly [string, number] = ['2000::', 3]

/** Includes tunnels and translations, which embed an unchecked IPv4 address. */
const SPECIAL_V6: readonly (readonly [string, number])[] = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
]

const privateV4 = new BlockList()
for (const [address, prefix] of PRIVATE_V4) privateV4.addSubnet(address, prefix, 'ipv4')
const globalV6 = new BlockList()
globalV6.addSubnet(GLOBAL_V6[0], GLOBAL_V6[1], 'ipv6')
const specialV6 = new BlockList()
for (const [address, prefix] of SPECIAL_V6) specialV6.addSubnet(address, prefix, 'ipv6')

/**
 * True for loopback, link-local, private, shared, documentation, multicast and reserved addresses, for IPv4 inside
 * IPv6, and for text that is not an address.
 */
export function isPrivateAddress(address: string): boolean {
  const zone = address.indexOf('%')
  const bare = zone < 0 ? address : address.slice(0, zone)
  const family = isIP(bare)
  if (family === 4) return privateV4.check(bare, 'ipv4')
  if (family !== 6 || zone >= 0) return true
  return !globalV6.check(bare, 'ipv6') || specialV6.check(bare, 'ipv6')
}
