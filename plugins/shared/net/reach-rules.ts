/** Where requests for URLs of clients may go: hosts and addresses that the operator allows. */
import { isIP, type LookupFunction } from 'node:net'
import { Type } from '#kernel'
import { isMetadataHost, isPrivateAddress, pinnedLookup, type Resolver } from './private-addresses.ts'

const names = (description: string) => Type.Array(Type.String({ minLength: 1 }), { default: [], description })

/** Settings of such a section beside `isAllowed`. */
export const reachSettings = {
  hosts: names('Allowed hosts; `*.example.com` allows all subdomains; empty allows all.'),
  deniedHosts: names('Denied hosts.'),
  allowsPrivate: Type.Boolean({
    default: false,
    description:
      'Allow loopback, link-local and private addresses, except metadata services of clouds. For closed networks and tests.',
  }),
  requiresHttps: Type.Boolean({ default: false, description: 'Reject URLs without TLS.' }),
  tenants: names('Tenants that may name URLs; empty allows all.'),
}

/** Rules for URLs that come from a client. */
export interface ReachRules {
  readonly isAllowed: boolean
  readonly hosts: readonly string[]
  readonly deniedHosts: readonly string[]
  readonly allowsPrivate: boolean
  readonly requiresHttps: boolean
  /** Hosts that may have private addresses although `allowsPrivate` is false. */
  readonly privateHosts?: readonly string[]
}

/** The rules of a section for one tenant. */
export function rulesFor<Rules extends ReachRules & { readonly tenants: readonly string[] }>(
  section: Rules,
  tenant: string,
): ReachRules {
  const { tenants } = section
  return { ...section, isAllowed: section.isAllowed && (tenants.length === 0 || tenants.includes(tenant)) }
}

/** Rules for URLs that the operator chose. */
export const ANYWHERE: ReachRules = {
  isAllowed: true,
  hosts: [],
  deniedHosts: [],
  allowsPrivate: true,
  requiresHttps: false,
}

/** The rules forbid the URL; the message contains the reason and no address. */
export class UnreachableByRule extends Error {
  constructor(reason: string) {
    super(reason)
    this.name = 'UnreachableByRule'
  }
}

const MAX_URL_LENGTH = 2048

/** Parses a URL. @throws UnreachableByRule if the URL is invalid or forbidden by the rules */
export function readAllowedUrl(text: string, rules: ReachRules): URL {
  if (!rules.isAllowed) throw new UnreachableByRule('URLs of clients are disabled')
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
