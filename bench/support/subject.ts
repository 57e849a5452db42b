/** What is measured: something that listens in front of the simulated worker, or the worker itself. */
import { type Child, startScript } from './process.ts'

export interface Subject {
  /** `before`: the same gateway as another checkout builds it. */
  readonly name: 'direct' | 'nginx' | 'before' | 'gateway'
  readonly port: number
  /** The process whose CPU and memory count. */
  readonly pid: number
  stop(): Promise<void>
}

/** Key that the load sends; every subject gets the same requests. */
export const BENCH_KEY = 'bench-key-0123456789'

export interface RunningWorker {
  readonly port: number
  /** All ports it listens on; `port` is the first. */
  readonly ports: readonly number[]
  readonly child: Child
}

/** @param count ports to listen on; silent and stamped workers have one */
export async function startWorker(
  file: 'worker.ts' | 'silent-worker.ts' | 'stamped-worker.ts' = 'worker.ts',
  count = 1,
): Promise<RunningWorker> {
  const child = startScript(new URL(file, import.meta.url), count > 1 ? ['--count', String(count)] : [])
  const { port, ports } = await child.report()
  return { port: Number(port), ports: (ports as number[] | undefined) ?? [Number(port)], child }
}

/** The worker with nothing in front. */
export function directSubject(worker: RunningWorker): Subject {
  return { name: 'direct', port: worker.port, pid: worker.child.pid, stop: async () => {} }
}
