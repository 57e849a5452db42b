/** Resolves a host and checks every address, so that the one that was checked is the one connected to. */
import { lookup } from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { isPrivateAddress } from '#contracts'

/** The name leads into a network that the operator did not list. */
export class PrivateAddress extends Error {
  constructor() {
    super('the host has a private address')
    this.name = 'PrivateAddress'
  }
}

/** @param networks such as `10.0.0.0/8` @returns null when one of them is none */
export function readNetworks(networks: readonly string[]): BlockList | null {
  const list = new BlockList()
  for (const network of networks) {
    const [address, prefix] = network.split('/')
    const family = isIP(address)
    const bits = prefix === undefined ? (family === 4 ? 32 : 128) : Number(prefix)
    if (family === 0 || !Number.isInteger(bits) || bits < 0 || bits > (family === 4 ? 32 : 128)) return null
    list.addSubnet(address, bits, family === 4 ? 'ipv4' : 'ipv6')
  }
  return list
}

/** For sockets. Addresses that stand in a URL themselves never come here: they are listed as they are. */
export function pinnedLookup(allowed: BlockList): LookupFunction {
  return (host, options, done) => {
    lookup(host, { all: true }, (error, found) => {
      if (error !== null) return done(error, '', 0)
      const isOpen = found.every(
        ({ address, family }) =>
          !isPrivateAddress(address) || allowed.check(address, family === 4 ? 'ipv4' : 'ipv6'),
      )
      if (!isOpen) return done(new PrivateAddress(), '', 0)
      const usable = found.filter(({ family }) => !options.family || family === options.family)
      if (usable.length === 0) return done(new Error('the host has no address'), '', 0)
      if (options.all === true) return done(null, usable)
      done(null, usable[0].address, usable[0].family)
    })
  }
}
