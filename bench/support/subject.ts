/** A measured server: a proxy in front of the simulated worker, or the worker itself. */
import { type Child, startScript } from './process.ts'

export interface Subject {
  /** `direct`, `bare relay`, `nginx`, `gateway`, or that of another gateway. */
  readonly name: string
  readonly port: number
  /** The process whose CPU time and memory are measured. */
  readonly pid: number
  stop(): Promise<void>
}

/** API key in all requests, also in those to nginx and to the worker. */
export const BENCH_KEY = 'bench-key-0123456789'

export interface RunningWorker {
  readonly port: number
  /** All ports it listens on; `port` is the first. */
  readonly ports: readonly number[]
  readonly child: Child
}

/** @param count number of ports; `worker.ts` only */
export async function startWorker(
  file: 'worker.ts' | 'silent-worker.ts' | 'stamped-worker.ts' = 'worker.ts',
  count = 1,
): Promise<RunningWorker> {
  const child = startScript(file, count > 1 ? { count } : {})
  const { port, ports } = await child.report()
  return { port: Number(port), ports: (ports as number[] | undefined) ?? [Number(port)], child }
}

/** The worker without a proxy. */
export function directSubject(worker: RunningWorker): Subject {
  return { name: 'direct', port: worker.port, pid: worker.child.pid, stop: async () => {} }
}

/** A relay that does nothing else. Whole responses only. */
export async function startBareRelay(workerPort: number): Promise<Subject> {
  const child = startScript('bare-relay.ts', { worker: workerPort })
  const { port } = await child.report()
  return { name: 'bare relay', port: Number(port), pid: child.pid, stop: () => child.stop() }
}
