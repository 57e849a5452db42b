/** One slow read of the long stream through a gateway, whose memory is sampled all the while. */
import { bulkSha256 } from './bulk-stream.ts'
import { rssBytes, startScript } from './process.ts'
import type { Subject } from './subject.ts'

export const BYTES_PER_MS = 8_192
const SAMPLE_MS = 100

export interface SlowRead {
  /** Highest sample minus the value before, in bytes. */
  readonly growth: number
  /** The client has got what the worker has sent, by hash. */
  readonly isIdentical: boolean
}

/**
 * @param options of the client beside its port and speed
 * @param expected hash that the client is to come to
 */
export async function readSlowly(
  gateway: Subject,
  options: readonly string[] = [],
  expected = bulkSha256(),
): Promise<SlowRead> {
  const before = rssBytes(gateway.pid)
  let highest = before
  const sampling = setInterval(() => {
    highest = Math.max(highest, rssBytes(gateway.pid))
  }, SAMPLE_MS)
  const client = startScript(new URL('./slow-load.ts', import.meta.url), [
    '--port',
    String(gateway.port),
    '--bytes-per-ms',
    String(BYTES_PER_MS),
    ...options,
  ])
  const report = await client.report()
  clearInterval(sampling)
  await client.stop()
  return { growth: highest - before, isIdentical: report.isWhole === true && report.sha256 === expected }
}
