/** Addresses, networks and URLs in settings. */
import { BlockList, isIP, isIPv6 } from 'node:net'
import type { SettingProblem, WorkerEntry } from '#kernel'

const V4_BITS = 32
const V6_BITS = 128
const NO_NETWORK = 'must be a network such as 10.0.0.0/8 or fd00::/8'
const BITS = /^\d{1,3}$/

interface Network {
  readonly address: string
  readonly bits: number
  readonly type: 'ipv4' | 'ipv6'
}

/**
 * Reads CIDR blocks such as `10.0.0.0/8` and `fd00::/8`, or single addresses.
 * @throws Error for an invalid network
 */
export function readNetworks(networks: readonly string[]): BlockList {
  const list = new BlockList()
  for (const text of networks) {
    const network = readNetwork(text)
    if (network === null) throw new Error(`'${text}' ${NO_NETWORK}`)
    list.addSubnet(network.address, network.bits, network.type)
  }
  return list
}

/** @param path of the list within the plugin's section */
export function* networkProblems(
  path: readonly string[],
  networks: readonly string[],
): Generator<SettingProblem> {
  for (const [index, text] of networks.entries())
    if (readNetwork(text) === null)
      yield { path: [...path, String(index)], text: `${NO_NETWORK}, got ${JSON.stringify(text)}` }
}

function readNetwork(text: string): Network | null {
  const slash = text.indexOf('/')
  const address = slash < 0 ? text : text.slice(0, slash)
  const family = isIP(address)
  const most = family === 4 ? V4_BITS : V6_BITS
  const bits = slash < 0 ? String(most) : text.slice(slash + 1)
  if (family === 0 || address.includes('%') || !BITS.test(bits) || Number(bits) > most) return null
  return { address, bits: Number(bits), type: family === 4 ? 'ipv4' : 'ipv6' }
}

/** @returns false if `address` is not an IP address */
export function isWithin(networks: BlockList, address: string): boolean {
  const family = isIP(address)
  return family !== 0 && networks.check(address, family === 4 ? 'ipv4' : 'ipv6')
}

/** @returns the problem; null if the text may be an address or a host name */
export function hostProblem(host: string): string | null {
  if (isIPv6(host)) return null
  if (host === '') return 'must not be empty'
  if (host.includes('/')) return 'must be an address to listen on, not a URL'
  if (host.startsWith('[')) return 'must be written without brackets'
  if (host.includes(':')) return 'must be an address without a port; set the port separately'
  return /\s/.test(host) ? 'must not contain spaces' : null
}

const LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', 'localhost', '[::1]'])

/** Whether secrets may be sent to the URL: it uses TLS or a loopback address. */
export function isSecureUrl({ protocol, hostname }: URL): boolean {
  return protocol === 'https:' || (protocol === 'http:' && LOOPBACK.has(hostname))
}

/** Removes trailing slashes in linear time; a regular expression would be quadratic. */
export function trimSlashes(text: string): string {
  let end = text.length
  while (end > 0 && text.charCodeAt(end - 1) === 0x2f) end--
  return text.slice(0, end)
}

/** URL of a worker's engine, which all of its data-parallel ranks share. */
export function engineUrl({
  url,
  dataParallel,
}: Pick<WorkerEntry, 'url'> & Partial<Pick<WorkerEntry, 'dataParallel'>>): string {
  return dataParallel?.baseUrl ?? url
}
