/** Checks where tool servers may be: configured servers anywhere, servers named by clients only where the rules allow. */

import { type LookupAddress, lookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { isPrivateAddress } from '#shared'

/** Rules for servers whose URL comes from a client. */
export interface ReachRules {
  /** False rejects all servers named by clients. */
  readonly isAllowed: boolean
  /** Host names; `*.example.com` allows all subdomains; empty allows all hosts. */
  readonly hosts: readonly string[]
  readonly deniedHosts: readonly string[]
  /** Allows loopback, link-local and private addresses. */
  readonly allowsPrivate: boolean
  readonly requiresHttps: boolean
}

/** Rules for configured servers. */
export const ANYWHERE: ReachRules = {
  isAllowed: true,
  hosts: [],
  deniedHosts: [],
  allowsPrivate: true,
  requiresHttps: false,
}

/** The rules forbid the server; the message contains the reason and no address. */
export class UnreachableByRule extends Error {
  constructor(reason: string) {
    super(reason)
    this.name = 'UnreachableByRule'
  }
}

const MAX_URL_LENGTH = 2048

/** Parses a server URL. @throws UnreachableByRule if the URL is invalid or forbidden by the rules */
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

/** Checks the host before each connection and redirect. @throws UnreachableByRule */
export function checkHost(url: URL, rules: ReachRules): void {
  if (rules.requiresHttps && url.protocol !== 'https:') throw new UnreachableByRule('https is required')
  const host = hostOf(url)
  if (rules.deniedHosts.some((pattern) => matchesHost(pattern, host)))
    throw new UnreachableByRule('its host is denied')
  if (rules.hosts.length > 0 && !rules.hosts.some((pattern) => matchesHost(pattern, host)))
    throw new UnreachableByRule('its host is not in the list of allowed hosts')
  if (isIP(host) !== 0) checkAddress(host, rules)
}

/** Checks the resolved address of a connection. @throws UnreachableByRule */
export function checkAddress(address: string, rules: ReachRules): void {
  if (!rules.allowsPrivate && isPrivateAddress(address)) throw new UnreachableByRule('its address is private')
}

/** Host name in lower case, without IPv6 brackets and final dot. */
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

/** Resolves all addresses of a host. */
export type Resolver = (
  host: string,
  done: (error: Error | null, addresses: readonly LookupAddress[]) => void,
) => void

const systemResolver: Resolver = (host, done) => lookup(host, { all: true }, done)

/** A lookup for sockets that fails if any address of the host is forbidden. Not called for literal addresses. */
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
