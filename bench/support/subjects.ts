/** Starts the simulated worker, nginx and the gateway. */
import { type GatewayOptions, startGateway } from './gateway.ts'
import { startNginx } from './nginx.ts'
import { directSubject, type Subject, startWorker } from './subject.ts'

export interface SubjectOptions {
  readonly features?: Omit<GatewayOptions, 'workerPorts'>
  /** Number of workers; the direct path uses the first. Default 1. */
  readonly workers?: number
}

/** Calls `use` with direct path, nginx and gateways running, and stops them afterwards. */
export async function withSubjects<T>(
  use: (subjects: readonly Subject[]) => Promise<T>,
  { features, workers = 1 }: SubjectOptions = {},
): Promise<T> {
  const worker = await startWorker('worker.ts', workers)
  const subjects: Subject[] = [directSubject(worker)]
  try {
    subjects.push(await startNginx(worker.ports))
    subjects.push(await startGateway({ ...features, workerPorts: worker.ports }))
    return await use(subjects)
  } finally {
    for (const subject of subjects.reverse()) await subject.stop()
    await worker.child.stop()
  }
}
