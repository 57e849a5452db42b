/** Starts the simulated worker and everything that is compared in front of it. */
import { type GatewayFeatures, startGateway } from './gateway.ts'
import { startNginx } from './nginx.ts'
import { directSubject, type Subject, startWorker } from './subject.ts'

/** Runs with direct, nginx and gateway all up; whatever happens, all are stopped. */
export async function withSubjects<T>(
  use: (subjects: readonly Subject[]) => Promise<T>,
  features: GatewayFeatures = {},
): Promise<T> {
  const worker = await startWorker()
  const subjects: Subject[] = [directSubject(worker)]
  try {
    subjects.push(await startNginx(worker.port))
    subjects.push(await startGateway({ ...features, workerPorts: [worker.port] }))
    return await use(subjects)
  } finally {
    for (const subject of subjects.reverse()) await subject.stop()
    await worker.child.stop()
  }
}
