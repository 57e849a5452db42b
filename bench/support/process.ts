/** Starts the processes of a benchmark and reads their CPU time and memory from /proc. Linux only. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const PAGE_BYTES = 4_096

/** A child process that reports by lines of JSON on its standard output. */
export interface Child {
  readonly pid: number
  /** Reads the next report. @throws if the process exits first */
  report(): Promise<Record<string, unknown>>
  /** Last 4,000 characters of its error output. */
  errors(): string
  isRunning(): boolean
  /** Terminates the process and waits for its exit. */
  stop(): Promise<void>
}

const running = new Set<ChildProcess>()
const directories: string[] = []
process.on('exit', () => {
  for (const child of running) {
    child.kill('SIGTERM')
    // A stopped process gets the other signal only when it continues.
    child.kill('SIGCONT')
  }
  for (const directory of directories) rmSync(directory, { recursive: true, force: true, maxRetries: 5 })
})

/** Creates a directory that is removed when the benchmark exits. @returns its path without symbolic links */
export function temporaryDirectory(): string {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'weir-bench-')))
  directories.push(directory)
  return directory
}

/** Starts a program; its error output is shown when it fails. */
export function startChild(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Child {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } })
  running.add(child)
  let errors = ''
  child.stderr.on('data', (bytes) => {
    errors = (errors + String(bytes)).slice(-4_000)
  })
  const isRunning = () => child.exitCode === null && child.signalCode === null
  const exited = once(child, 'close').then(() => running.delete(child))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return {
    pid: child.pid ?? 0,
    async report() {
      for (;;) {
        const { value, done } = await lines.next()
        if (done) throw new Error(`${command} ${args.join(' ')} ended early:\n${errors}`)
        if (value.startsWith('{"report":')) return JSON.parse(value).report
      }
    },
    errors: () => errors,
    isRunning,
    async stop() {
      if (!isRunning()) return
      child.kill('SIGTERM')
      const hard = setTimeout(() => child.kill('SIGKILL'), 3_000)
      await exited
      clearTimeout(hard)
    },
  }
}

/** In a child: sends one report to the parent. */
export function announceReady(report: Record<string, unknown>): void {
  process.stdout.write(`${JSON.stringify({ report })}\n`)
}

/** Starts a TypeScript file of this folder; each option becomes `--name value`. */
export function startScript(file: string, options: Readonly<Record<string, string | number>> = {}): Child {
  const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)])
  const script = fileURLToPath(new URL(file, import.meta.url))
  return startChild(process.execPath, ['--conditions=weir-source', script, ...args])
}

/**
 * CPU time that the threads of a process have used so far, user and system, in microseconds. The exact run time of each
 * thread, not the kernel's samples at its ticks, with which the events of a stream may keep step.
 */
export function cpuMicros(pid: number): number {
  let nanos = 0
  for (const used of threadTimes(pid).values()) nanos += used
  return nanos / 1_000
}

/** Resident memory of a process, in bytes. */
export function rssBytes(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ')[1]) * PAGE_BYTES
}

/** As `cpuMicros`, with all processes below it. */
export function treeCpuMicros(pid: number): number {
  return [pid, ...descendants(pid)].reduce((sum, id) => sum + cpuMicros(id), 0)
}

/** As `rssBytes`, with all processes below it; pages that they share count for each. */
export function treeRssBytes(pid: number): number {
  return [pid, ...descendants(pid)].reduce((sum, id) => sum + rssBytes(id), 0)
}

/** CPU time of each thread of a process so far, by its id, in nanoseconds. */
export function threadTimes(pid: number): Map<number, number> {
  const times = new Map<number, number>()
  for (const id of readdirSync(`/proc/${pid}/task`).map(Number)) {
    try {
      times.set(id, schedule(pid, id)[0])
    } catch {
      // The thread has just ended.
    }
  }
  return times
}

/** How often each thread of a process has slept and woken up so far, by its name and id. */
export function threadWakeUps(pid: number): Map<string, number> {
  const counts = new Map<string, number>()
  for (const id of threadTimes(pid).keys()) {
    const status = readFileSync(`/proc/${pid}/task/${id}/status`, 'latin1')
    const name = /^Name:\s*(.+)$/m.exec(status)?.[1]
    counts.set(`${name} ${id - pid}`, Number(/^voluntary_ctxt_switches:\s*(\d+)/m.exec(status)?.[1]))
  }
  return counts
}

/** Time that a thread has waited for a core so far, in milliseconds. */
export function runQueueMs(pid: number, thread: number): number {
  return schedule(pid, thread)[1] / 1e6
}

/** Time on a core and time in the run queue, in nanoseconds. */
function schedule(pid: number, thread: number): readonly number[] {
  return readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'latin1').split(' ').map(Number)
}

/** Child processes of a process. */
export function childPids(pid: number): number[] {
  return readdirSync(`/proc/${pid}/task`)
    .flatMap((task) => readFileSync(`/proc/${pid}/task/${task}/children`, 'latin1').trim().split(' '))
    .filter(Boolean)
    .map(Number)
}

/** Child processes of a process, their child processes, and so on. */
export function descendants(pid: number): number[] {
  return childPids(pid).flatMap((child) => [child, ...descendants(child)])
}

/** Limit of open files of this process and its children. */
export function openFileLimit(): number {
  const line = readFileSync('/proc/self/limits', 'latin1').match(/^Max open files\s+(\d+)/m)
  return Number(line?.[1] ?? 1_024)
}

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address !== null ? address.port : 0
}

export function wait(delayMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, delayMs))
}

/** Thrown by a check that can no longer succeed. */
export class StopWaiting extends Error {}

/** Polls until the check returns true. @throws naming `what` after `timeoutMs` */
export async function waitUntil(
  what: string,
  timeoutMs: number,
  check: () => Promise<boolean>,
): Promise<void> {
  const deadlineMs = performance.now() + timeoutMs
  const holds = () =>
    check().catch((error) => {
      if (error instanceof StopWaiting) throw error
      return false
    })
  while (!(await holds())) {
    if (performance.now() > deadlineMs) throw new Error(`${what}: not within ${timeoutMs} ms`)
    await wait(5)
  }
}
