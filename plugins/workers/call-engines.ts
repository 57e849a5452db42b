/** One POST to every engine behind a list of workers, and who took it. */
import { type Static, Type, type WorkerEntry } from '#kernel'
import { fanOut } from './fan-out.ts'
import { type CallWorker, describeFailure, engineUrl, isGoodStatus } from './probe.ts'

/** @source routes facts 17.1 */
const MAX_PARALLEL = 32
const MAX_REPLY_BYTES = 1_048_576

export const FailedCallSchema = Type.Object({ worker: Type.String(), error: Type.String() })

export interface EngineCall {
  readonly path: string
  /** JSON; absent sends none. */
  readonly body?: string
  readonly timeoutMs: number
}

export interface EngineCallReport {
  /** URLs of workers whose engine answered 2xx. */
  readonly successful: string[]
  readonly failed: Static<typeof FailedCallSchema>[]
}

/** Data-parallel ranks share an engine: it is called once, and the outcome is that of each. In order of the workers. */
export async function callEngines(
  call: CallWorker,
  workers: readonly WorkerEntry[],
  engineCall: EngineCall,
): Promise<EngineCallReport> {
  const engines = [...Map.groupBy(workers, engineUrl)]
  const problems = await fanOut(engines, MAX_PARALLEL, ([, [first]]) => callOne(call, first, engineCall))
  const problemOf = new Map(engines.map(([url], place) => [url, problems[place]]))
  const successful: string[] = []
  const failed: Static<typeof FailedCallSchema>[] = []
  for (const worker of workers) {
    const error = problemOf.get(engineUrl(worker)) ?? null
    if (error === null) successful.push(worker.url)
    else failed.push({ worker: worker.url, error })
  }
  return { successful, failed }
}

/** Null when the engine took it, else why not. */
async function callOne(
  call: CallWorker,
  worker: WorkerEntry,
  { path, body, timeoutMs }: EngineCall,
): Promise<string | null> {
  try {
    const reply = await call(worker, {
      method: 'POST',
      path,
      ...(body !== undefined && { body, headers: ['content-type', 'application/json'] }),
      timeoutMs,
      maxBodyBytes: MAX_REPLY_BYTES,
    })
    return isGoodStatus(reply.status) ? null : `the worker answered ${reply.status}`
  } catch (error) {
    return describeFailure(error)
  }
}
