/** Load before anything is measured. */
import type { LoadResult } from './load.ts'

/** A cold gateway costs several times as much, and on a busy machine it stays cold for long. */
const REQUESTS = 10_000
const PARTS = 5
const SECONDS = 4

/** Until the code of this kind of request is compiled. */
export async function warmUp(load: (seconds: number) => Promise<LoadResult>): Promise<void> {
  let requests = 0
  for (let part = 0; part < PARTS && requests < REQUESTS; part++)
    requests += (await load(SECONDS)).report.requests
}
