/** Detects addresses and hosts to which requests for client-supplied URLs must not go, and resolves host names with a check of every address. */

import { type LookupAddress, lookup } from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'

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
  ['192.31.196.0', 24],
  ['192.52.193.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['192.175.48.0', 24],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
]

/**
 * Public unicast of IPv6, except the blocks below. Outside of it are loopback, unique local, link-local and multicast
 * addresses, IPv4 inside IPv6 (mapped, compatible, NAT64) and SRv6.
 */
const GLOBAL_V6: readonly [string, number] = ['2000::', 3]

/** @source IANA special-purpose registry */
const SPECIAL_V6: readonly (readonly [string, number])[] = [
  // Includes Teredo, which embeds an IPv4 address.
  ['2001::', 23],
  ['2001:db8::', 32],
  // 6to4, which embeds an IPv4 address.
  ['2002::', 16],
  ['2620:4f:8000::', 48],
  ['3fff::', 20],
]

/** Instance metadata and host agents of clouds, which hand out credentials without a key. */
const METADATA_V4: readonly string[] = [
  // AWS, Azure, Google, Oracle, DigitalOcean and others
  '169.254.169.254',
  // AWS containers
  '169.254.170.2',
  '169.254.170.23',
  // Tencent
  '169.254.0.23',
  // Scaleway
  '169.254.42.42',
  // Alibaba
  '100.100.100.200',
  // Azure host agent
  '168.63.129.16',
  // Oracle
  '192.0.0.192',
]
const METADATA_V6: readonly string[] = [
  // AWS
  'fd00:ec2::254',
  'fd00:ec2::23',
  // Google
  'fd20:ce::254',
  // Oracle
  'fd00:c1::a9fe:a9fe',
  // Scaleway
  'fd00:42::42',
]

/** Names of such services. */
const METADATA_HOSTS: ReadonlySet<string> = new Set([
  'instance-data.ec2.internal',
  'metadata.goog',
  'metadata.google.internal',
  'metadata.packet.net',
  'metadata.platformequinix.com',
  'metadata.tencentyun.com',
])

const privateV4 = new BlockList()
for (const [address, prefix] of PRIVATE_V4) privateV4.addSubnet(address, prefix, 'ipv4')
const globalV6 = new BlockList()
globalV6.addSubnet(GLOBAL_V6[0], GLOBAL_V6[1], 'ipv6')
const specialV6 = new BlockList()
for (const [address, prefix] of SPECIAL_V6) specialV6.addSubnet(address, prefix, 'ipv6')
const metadata = new BlockList()
for (const address of METADATA_V4) {
  metadata.addAddress(address, 'ipv4')
  // NAT64; mapped addresses are covered by the IPv4 entry.
  metadata.addAddress(`64:ff9b::${address}`, 'ipv6')
}
for (const address of METADATA_V6) metadata.addAddress(address, 'ipv6')

/**
 * True for loopback, link-local, private, shared, documentation, multicast and reserved addresses, for metadata services
 * of clouds, for IPv4 inside IPv6, and for text that is not an address.
 */
export function isPrivateAddress(address: string): boolean {
  const family = isIP(address)
  if (family === 4) return privateV4.check(address, 'ipv4') || metadata.check(address, 'ipv4')
  if (family !== 6 || address.includes('%')) return true
  return !globalV6.check(address, 'ipv6') || specialV6.check(address, 'ipv6')
}

/** True for the addresses and names of cloud metadata services. @param host lower case, IPv6 without brackets */
export function isMetadataHost(host: string): boolean {
  const family = isIP(host)
  return family === 0 ? METADATA_HOSTS.has(host) : metadata.check(host, family === 4 ? 'ipv4' : 'ipv6')
}

/** Resolves all addresses of a host. */
export type Resolver = (
  host: string,
  done: (error: Error | null, addresses: readonly LookupAddress[]) => void,
) => void

const systemResolver: Resolver = (host, done) => lookup(host, { all: true }, done)

/**
 * Resolves host names for sockets: the socket connects to an address that was checked. Sockets do not call it for literal
 * addresses; check those before.
 *
 * @param check throws for a forbidden address; one of them fails the connection
 */
export function pinnedLookup(
  check: (address: string, host: string) => void,
  resolve: Resolver = systemResolver,
): LookupFunction {
  return (host, options, done) => {
    resolve(host, (error, found) => {
      if (error !== null) return done(error, '', 0)
      const addresses = found.filter(({ family }) => !options.family || family === options.family)
      try {
        for (const { address } of found) check(address, host)
      } catch (refusal) {
        return done(refusal as Error, '', 0)
      }
      if (addresses.length === 0) return done(new Error('the host has no usable address'), '', 0)
      if (options.all === true) return done(null, [...addresses])
      done(null, addresses[0].address, addresses[0].family)
    })
  }
}
