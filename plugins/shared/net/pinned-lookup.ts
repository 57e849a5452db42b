/** Resolves host names for sockets, with a check of every address: the socket connects to an address that was checked. */
import { type LookupAddress, lookup } from 'node:dns'
import type { LookupFunction } from 'node:net'

/** Resolves all addresses of a host. */
export type Resolver = (
  host: string,
  done: (error: Error | null, addresses: readonly LookupAddress[]) => void,
) => void

const systemResolver: Resolver = (host, done) => lookup(host, { all: true }, done)

/**
 * Sockets do not call it for literal addresses; check those before.
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
