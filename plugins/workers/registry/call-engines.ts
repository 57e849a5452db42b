/** One action of every engine behind a list of workers, and who took it. */
import type { EngineAction, WorkerControls } from '#kernel'
import { type Static, Type, type WorkerEntry } from '#kernel'
import { engineUrl } from './engine-url.ts'
import { fanOut } from './fan-out.ts'

const MAX_PARALLEL = 32

export const FailedCallSchema = Type.Object({ worker: Type.String(), error: Type.String() })

export interface EngineCallReport {
  /** URLs of workers whose engine took it. */
  readonly successful: string[]
  readonly failed: Static<typeof FailedCallSchema>[]
}

/** Those whose connection mode has the action. */
export function takersOf(
  controls: WorkerControls,
  workers: readonly WorkerEntry[],
  kind: EngineAction['kind'],
): readonly WorkerEntry[] {
  return workers.filter(({ connectionMode }) => {
    const control = controls.controlOf(connectionMode)
    return control?.perform !== undefined && control.actions.includes(kind)
  })
}

/**
 * Data-parallel ranks share an engine: it is called once, and the outcome is that of each. In order of the workers.
 * @param workers some that `takersOf` has given
 */
export async function callEngines(
  controls: WorkerControls,
  workers: readonly WorkerEntry[],
  action: EngineAction,
  timeoutMs: number,
): Promise<EngineCallReport> {
  const engines = [...Map.groupBy(workers, engineUrl)]
  const problems = await fanOut(engines, MAX_PARALLEL, async ([, [first]]) => {
    const control = controls.controlOf(first.connectionMode)
    const done = control?.perform?.(first, action, timeoutMs)
    return done === undefined ? 'nobody looks after it' : await done
  })
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
