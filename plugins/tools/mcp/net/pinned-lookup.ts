/** Resolves a host and checks what comes out, so that the address that was checked is the one connected to. */
import { type LookupAddress, lookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { checkAddress, type ReachRules } from './reach-rules.ts'

/** Asks the resolver for all addresses of a host. */
export type Resolver = (
  host: string,
  done: (error: Error | null, addresses: readonly LookupAddress[]) => void,
) => void

const systemResolver: Resolver = (host, done) => lookup(host, { all: true }, done)

/** A lookup for sockets: fails when any address of the host breaks the rules. Literal addresses never come here. */
export function pinnedLookup(rules: ReachRules, resolve: Resolver = systemResolver): LookupFunction {
  return (host, options, done) => {
    resolve(host, (error, found) => {
      if (error !== null) return done(error, '', 0)
      const addresses = found.filter(({ family }) => !options.family || family === options.family)
      try {
        for (const { address } of found) checkAddress(address, rules)
      } catch (refusal) {
        return done(refusal as Error, '', 0)
      }
      if (addresses.length === 0) return done(new Error('the host has no address'), '', 0)
      if (options.all === true) return done(null, [...addresses])
      done(null, addresses[0].address, addresses[0].family)
    })
  }
}
