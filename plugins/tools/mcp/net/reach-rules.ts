/** Where servers may be: the operator's own anywhere, those named by clients only where the rules allow. */

import { type LookupAddress, lookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { isPrivateAddress } from '#shared'

/** Rules for servers whose URL a client gave. */
export interface ReachRules {
  /** False: no server of a client's own at all. */
  readonly isAllowed: boolean
  /** Host names, `*.example.com` for everything below one; empty: every host. */
  readonly hosts: readonly string[]
  readonly deniedHosts: readonly string[]
  /** Loopback, link-local and private addresses too. */
  readonly allowsPrivate: boolean
  readonly requiresHttps: boolean
}

/** For servers of the configuration, which the operator chose. */
export const ANYWHERE: ReachRules = {
  isAllowed: true,
  hosts: [],
  deniedHosts: [],
  allowsPrivate: true,
  requiresHttps: false,
}

/** The server stands where it may not; the text says why and names no address. */
export class UnreachableByRule extends Error {
  constructor(reason: string) {
    super(reason)
    this.name = 'UnreachableByRule'
  }
}

const MAX_URL_LENGTH = 2048

/** Reads a server URL. @throws UnreachableByRule when it is no URL for a server, or the rules forbid it */
export function readServerUrl(text: string, rules: ReachRules): URL {
  if (!rules.isAllowed) throw new UnreachableByRule('servers by URL are disabled')
  const url = text.length <= MAX_URL_LENGTH && URL.canParse(text) ? new URL(text) : null
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw new UnreachableByRule('it is not an http or https URL')
  if (url.username !== '' || url.password !== '')
    throw new UnreachableByRule('it must not contain a user name or password')
  url.hash = ''
  checkHost(url, rules)
  return url
}

/** Before each connection, and for each redirect. @throws UnreachableByRule */
export function checkHost(url: URL, rules: ReachRules): void {
  if (rules.requiresHttps && url.protocol !== 'https:') throw new UnreachableByRule('https is required')
  const host = hostOf(url)
  if (rules.deniedHosts.some((pattern) => matchesHost(pattern, host)))
    throw new UnreachableByRule('its host is denied')
  if (rules.hosts.length > 0 && !rules.hosts.some((pattern) => matchesHost(pattern, host)))
    throw new UnreachableByRule('its host is not in the list of allowed hosts')
  if (isIP(host) !== 0) checkAddress(host, rules)
}

/** After the name was resolved: the address that is connected to. @throws UnreachableByRule */
export function checkAddress(address: string, rules: ReachRules): void {
  if (!rules.allowsPrivate && isPrivateAddress(address)) throw new UnreachableByRule('its address is private')
}

/** Lower case, without the brackets of IPv6 and without a final dot. */
export function hostOf(url: URL): string {
  const host = url.hostname.toLowerCase()
  if (host.startsWith('[')) return host.slice(1, -1)
  return host.endsWith('.') ? host.slice(0, -1) : host
}

function matchesHost(pattern: string, host: string): boolean {
  const wanted = pattern.toLowerCase()
  return wanted.startsWith('*.')
    ? host.endsWith(wanted.slice(1)) && host.length >= wanted.length
    : host === wanted
}

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
