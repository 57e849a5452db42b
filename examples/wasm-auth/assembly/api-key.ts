/** Compares a key with the hashes of those that are known: the keys themselves are in no configuration. */
import { crypto, toHex, toUtf8 } from 'weir-gateway/wasm-sdk/assembly'

/** Goes through all hashes, each in the same time, so that nothing is learned from how long it takes. */
export function isKnownKey(key: string, hashes: string[]): bool {
  const digest = toUtf8(toHex(crypto.sha256(toUtf8(key))))
  let isKnown = false
  for (let i = 0; i < hashes.length; i++) {
    if (crypto.equals(digest, toUtf8(hashes[i]))) isKnown = true
  }
  return isKnown
}
