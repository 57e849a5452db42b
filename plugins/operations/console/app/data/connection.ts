/** Whether the gateway responds, and how pages continue after it was away. */
import { Store } from './store.ts'

/** Interval between attempts to reach the gateway. Milliseconds. */
const RETRY_MS = 1_000

export const isConnected = new Store(true)
/** Grows each time the gateway is back; pages read their data again. */
export const connections = new Store(0)
/** Grows each time a request is refused for its credential. */
export const refusals = new Store(0)

let retry: (() => Promise<void>) | null = null

/** @param probe resolves when the gateway responds */
export function setProbe(probe: () => Promise<void>): void {
  retry = probe
}

/** Starts to retry until the gateway responds. */
export function connectionLost(): void {
  if (!isConnected.value) return
  isConnected.set(false)
  setTimeout(attempt, RETRY_MS)
}

async function attempt(): Promise<void> {
  try {
    await retry?.()
  } catch {
    setTimeout(attempt, RETRY_MS)
    return
  }
  isConnected.set(true)
  connections.set(connections.value + 1)
}
