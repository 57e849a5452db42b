/** Checks where tool servers may be: configured servers anywhere, servers named by clients only where the rules allow. */
import { isIP, type LookupFunction } from 'node:net'
import { isMetadataHost, isPrivateAddress, pinnedLookup, type Resolver } from '#shared'
import type { McpConfig } from '../config.ts'

/** Rules for servers whose URL comes from a client. */
export type ReachRules = Omit<McpConfig['clientServers'], 'tenants'> & {
  /** Hosts that may have private addresses although `allowsPrivate` is false. */
  readonly privateHosts?: readonly string[]
}

/** Rules for servers that the operator chose. */
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
  if (isMetadataHost(host) || isIP(host) !== 0) checkAddress(host, host, rules)
}

/** Checks an address of a host. @throws UnreachableByRule */
function checkAddress(address: string, host: string, rules: ReachRules): void {
  if (isMetadataHost(address)) throw new UnreachableByRule('its address is that of a cloud metadata service')
  if (rules.allowsPrivate || rules.privateHosts?.includes(host) === true) return
  if (isPrivateAddress(address)) throw new UnreachableByRule('its address is private')
}

/** Host name in lower case, without IPv6 brackets and final dot. */
export function hostOf(url: URL): string {
  const host = url.hostname.toLowerCase()
  if (host.startsWith('[')) return host.slice(1, -1)
  return host.endsWith('.') ? host.slice(0, -1) : host
}

function matchesHost(pattern: string, host: string): boolean {
  const rule = pattern.toLowerCase()
  return rule.startsWith('*.') ? host.endsWith(rule.slice(1)) && host.length >= rule.length : host === rule
}

/** A lookup for sockets that fails if any address of the host is forbidden. Not called for literal addresses. */
export function lookupFor(rules: ReachRules, resolve?: Resolver): LookupFunction {
  return pinnedLookup((address, host) => checkAddress(address, host, rules), resolve)
}
