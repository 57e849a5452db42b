/** Finds the client address behind a chain of trusted proxies. */
import type { BlockList } from 'node:net'
import { isIP } from 'node:net'
import { type ClientAddressing, canonicalAddress, type HeaderList } from '#kernel'
import { isWithin } from '#shared'

/** Maximum addresses evaluated per request. */
const MAX_PROXIES = 32
const ADDRESS_AND_PORT = /^(\d+\.\d+\.\d+\.\d+):\d+$/
const BRACKETED = /^\[([^\]]+)\](:\d+)?$/

export class ProxyChain implements ClientAddressing {
  readonly header: string
  #proxies: BlockList
  /** Cached result for the last peer, because proxies are few. */
  #lastPeer = ''
  #isLastTrusted = false

  constructor(header: string, proxies: BlockList) {
    this.header = header
    this.#proxies = proxies
  }

  use(proxies: BlockList): void {
    this.#proxies = proxies
    this.#lastPeer = ''
  }

  addressOf(peer: string, headers: HeaderList): string {
    if (!this.#isTrustedPeer(peer)) return peer
    let client = peer
    let count = 0
    for (const entry of this.#entriesFromLast(headers)) {
      const address = canonicalAddress(bareAddress(entry))
      // Obfuscated or malformed: use the last known address.
      if (isIP(address) === 0) return client
      client = address
      if (++count === MAX_PROXIES || !isWithin(this.#proxies, client)) return client
    }
    return client
  }

  #isTrustedPeer(peer: string): boolean {
    if (peer !== this.#lastPeer) {
      this.#isLastTrusted = isWithin(this.#proxies, peer)
      this.#lastPeer = peer
    }
    return this.#isLastTrusted
  }

  /** Proxies append to the last header line or add a line. */
  *#entriesFromLast(headers: HeaderList): Generator<string> {
    for (let i = headers.length - 2; i >= 0; i -= 2) {
      if (headers[i] !== this.header) continue
      const line = headers[i + 1]
      let end = line.length
      while (end >= 0) {
        const comma = end === 0 ? -1 : line.lastIndexOf(',', end - 1)
        yield line.slice(comma + 1, end)
        end = comma
      }
    }
  }
}

/** Removes port, brackets and spaces. */
function bareAddress(entry: string): string {
  const text = entry.trim().toLowerCase()
  return ADDRESS_AND_PORT.exec(text)?.[1] ?? BRACKETED.exec(text)?.[1] ?? text
}
