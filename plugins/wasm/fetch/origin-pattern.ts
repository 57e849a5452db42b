/** Origins that modules may fetch from, and the URLs that each covers. */
import { isIP } from 'node:net'

/** One entry of a list, such as `https://api.example.com`, `http://10.0.0.7:8080` or `https://*.example.com`. */
export interface OriginPattern {
  readonly scheme: 'http:' | 'https:'
  /** Lower case, without the brackets of IPv6; for a pattern with a star, the part after `*.`. */
  readonly host: string
  /** Matches every name below the host, but not the host itself. */
  readonly isBelow: boolean
  readonly port: number
}

const ENTRY = /^(?:(https?):\/\/)?(\*\.)?([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::(\d{1,5}))?$/i
const DEFAULT_PORTS = { 'http:': 80, 'https:': 443 } as const

/** The default scheme is https. @returns null for an invalid entry */
export function readOrigin(text: string): OriginPattern | null {
  const [, scheme = 'https', star, host, port] = text.match(ENTRY) ?? []
  if (host === undefined) return null
  const written = `${scheme.toLowerCase()}://${host}${port === undefined ? '' : `:${port}`}`
  if (!URL.canParse(written)) return null
  const origin = originOf(new URL(written))
  const isBelow = star !== undefined
  return isBelow && isIP(origin.host) !== 0 ? null : { ...origin, isBelow }
}

/** @param url of http or https */
export function originOf(url: URL): OriginPattern {
  const scheme = url.protocol as OriginPattern['scheme']
  const name = url.hostname.toLowerCase()
  const bare = name.startsWith('[') ? name.slice(1, -1) : name
  const host = bare.endsWith('.') ? bare.slice(0, -1) : bare
  return { scheme, host, isBelow: false, port: url.port === '' ? DEFAULT_PORTS[scheme] : Number(url.port) }
}

/** Returns true if every origin that `other` matches is matched by the pattern. */
export function covers(pattern: OriginPattern, other: OriginPattern): boolean {
  if (pattern.scheme !== other.scheme || pattern.port !== other.port) return false
  if (!pattern.isBelow) return !other.isBelow && pattern.host === other.host
  const isSame = other.isBelow && other.host === pattern.host
  return isSame || other.host.endsWith(`.${pattern.host}`)
}
