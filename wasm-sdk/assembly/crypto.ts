/** Random bytes, hashes and comparison in constant time. */
import * as host from './extism'
import { takeBlock, toBlock } from './memory'

export namespace crypto {
  /** @param count at most 1024 */
  export function randomBytes(count: i32): Uint8Array {
    return required(takeBlock(host.random_bytes(count)), 'random_bytes')
  }

  export function sha256(data: Uint8Array): Uint8Array {
    const block = toBlock(data)
    const digest = takeBlock(host.sha256(block))
    host.free(block)
    return required(digest, 'sha256')
  }

  export function hmacSha256(key: Uint8Array, data: Uint8Array): Uint8Array {
    const keyBlock = toBlock(key)
    const dataBlock = toBlock(data)
    const digest = takeBlock(host.hmac_sha256(keyBlock, dataBlock))
    host.free(keyBlock)
    host.free(dataBlock)
    return required(digest, 'hmac_sha256')
  }

  /** Compares in constant time for arrays of the same length. */
  export function equals(a: Uint8Array, b: Uint8Array): bool {
    let difference = a.length ^ b.length
    for (let i = 0, shared = min(a.length, b.length); i < shared; i++) difference |= a[i] ^ b[i]
    return difference == 0
  }
}

function required(bytes: Uint8Array | null, name: string): Uint8Array {
  if (bytes === null) throw new Error(`the host returned nothing for ${name}`)
  return bytes
}
