/** Starts the simulated worker and everything that is compared in front of it. */
import { type GatewayFeatures, startGateway } from './gateway.ts'
import { startNginx } from './nginx.ts'
import { directSubject, type Subject, startWorker } from './subject.ts'

export interface SubjectOptions {
  readonly features?: GatewayFeatures
  /** Workers behind each subject; the direct path is to the first. Default 1. */
  readonly workers?: number
  /** Root of another checkout, built, to compare with. Null compares with none. */
  readonly against?: string | null
}

/** Runs with direct, nginx and gateway all up; whatever happens, all are stopped. */
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
