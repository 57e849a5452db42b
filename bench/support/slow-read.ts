/** One slow read of the long stream through a gateway whose memory is sampled meanwhile. */
import { rssBytes, startScript } from './process.ts'
import type { Subject } from './subject.ts'

export const BYTES_PER_MS = 8_192
const SAMPLE_MS = 100

export interface SlowRead {
  /** Highest sample minus the value before, in bytes. */
  readonly growth: number
  /** The stream was complete and had the expected hash. */
  readonly isIdentical: boolean
}

/** Samples the resident memory of a process. @returns a function that ends it and returns the growth in bytes */
export function sampleGrowth(pid: number, intervalMs: number): () => number {
  const before = rssBytes(pid)
  let highest = before
  const sampling = setInterval(() => {
    highest = Math.max(highest, rssBytes(pid))
  }, intervalMs)
  return () => {
    clearInterval(sampling)
    return highest - before
  }
}

/** @param options of the client, apart from its port and speed */
export async function readSlowly(
  gateway: Subject,
  expectedSha256: string,
  options: Readonly<Record<string, number>> = {},
): Promise<SlowRead> {
  const growth = sampleGrowth(gateway.pid, SAMPLE_MS)
  const client = startScript('slow-load.ts', {
    port: gateway.port,
    'bytes-per-ms': BYTES_PER_MS,
    ...options,
  })
  const { isWhole, sha256 } = await client.report()
  await client.stop()
  return { growth: growth(), isIdentical: isWhole === true && sha256 === expectedSha256 }
}
