/** Starts the simulated worker, nginx and the gateways that are compared. */
import { type GatewayFeatures, startGateway } from './gateway.ts'
import { startNginx } from './nginx.ts'
import { directSubject, type Subject, startWorker } from './subject.ts'

export interface SubjectOptions {
  readonly features?: GatewayFeatures
  /** Number of workers; the direct path uses the first. Default 1. */
  readonly workers?: number
  /** Root of another built checkout to compare with; null for none. */
  readonly against?: string | null
}

/** Calls `use` with direct path, nginx and gateways running, and stops them afterwards. */
export async function withSubjects<T>(
  use: (subjects: readonly Subject[]) => Promise<T>,
  { features, workers = 1, against = null }: SubjectOptions = {},
): Promise<T> {
  const worker = await startWorker('worker.ts', workers)
  const subjects: Subject[] = [directSubject(worker)]
  try {
    subjects.push(await startNginx(worker.ports))
    if (against !== null)
      subjects.push(await startGateway({ ...features, workerPorts: worker.ports, against }))
    subjects.push(await startGateway({ ...features, workerPorts: worker.ports }))
    return await use(subjects)
  } finally {
    for (const subject of subjects.reverse()) await subject.stop()
    await worker.child.stop()
  }
}
