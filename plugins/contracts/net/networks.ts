/** Networks as operators write them: `10.0.0.0/8`, `fd00::/8`, or one address. */
import { BlockList, isIP } from 'node:net'

const V4_BITS = 32
const V6_BITS = 128
const BITS = /^\d{1,3}$/

/**
 * @param setting for the message, such as `plugins.wasm.fetch.privateNetworks`
 * @throws Error naming the entry that is no network
 */
export function readNetworks(setting: string, networks: readonly string[]): BlockList {
  const list = new BlockList()
  networks.forEach((network, index) => {
    const slash = network.indexOf('/')
    const address = slash < 0 ? network : network.slice(0, slash)
    const family = isIP(address)
    const most = family === 4 ? V4_BITS : V6_BITS
    const bits = slash < 0 ? String(most) : network.slice(slash + 1)
    if (family === 0 || address.includes('%') || !BITS.test(bits) || Number(bits) > most)
      throw new Error(`${setting}[${index}] '${network}' is no network such as 10.0.0.0/8 or fd00::/8`)
    list.addSubnet(address, Number(bits), family === 4 ? 'ipv4' : 'ipv6')
  })
  return list
}

/** @param address an address; of what is none, false */
export function isWithin(networks: BlockList, address: string): boolean {
  const family = isIP(address)
  return family !== 0 && networks.check(address, family === 4 ? 'ipv4' : 'ipv6')
}
