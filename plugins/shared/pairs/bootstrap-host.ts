/** The bootstrap server of a prefill worker, by which the engines of a pair connect, and the rooms in which they meet. */
import { randomFillSync } from 'node:crypto'
import type { WorkerEntry } from '#kernel'
import { engineUrl } from '../net/urls.ts'

export type BootstrapServer = Pick<WorkerEntry, 'url' | 'bootstrapHost' | 'bootstrapPort' | 'dataParallel'>

/** @returns without the brackets of an IPv6 address */
export function bootstrapHostOf({ url, bootstrapHost, dataParallel }: BootstrapServer): string {
  if (bootstrapHost !== null) return bootstrapHost
  // The URL parser handles hosts of http URLs only.
  const base = engineUrl({ url, dataParallel }).replace(/^grpc(s?):/, 'http$1:')
  const host = URL.parse(base)?.hostname ?? 'localhost'
  return host.startsWith('[') ? host.slice(1, -1) : host
}

const drawn = new BigUint64Array(1)

/** A random number of this many bits, by which the two engines of a request find each other. */
export function drawRoom(bits: 31 | 63): bigint {
  randomFillSync(drawn)
  return BigInt.asUintN(bits, drawn[0])
}
