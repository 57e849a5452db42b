/** Resolves a host and checks every address, so that the one that was checked is the one connected to. */
import { lookup } from 'node:dns'
import type { BlockList, LookupFunction } from 'node:net'
import { isPrivateAddress, isWithin } from '#shared'

/** The name leads into a network that the operator did not list. */
export class PrivateAddress extends Error {
  constructor() {
    super('the host has a private address')
    this.name = 'PrivateAddress'
  }
}

/** For sockets. Addresses that stand in a URL themselves never come here: they are listed as they are. */
export function pinnedLookup(allowed: BlockList): LookupFunction {
  return (host, options, done) => {
    lookup(host, { all: true }, (error, found) => {
      if (error !== null) return done(error, '', 0)
      const isOpen = found.every(({ address }) => !isPrivateAddress(address) || isWithin(allowed, address))
      if (!isOpen) return done(new PrivateAddress(), '', 0)
      const usable = found.filter(({ family }) => !options.family || family === options.family)
      if (usable.length === 0) return done(new Error('the host name has no usable address'), '', 0)
      if (options.all === true) return done(null, usable)
      done(null, usable[0].address, usable[0].family)
    })
  }
}
