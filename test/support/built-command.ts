/** Runs the built `weir` command as child processes on free ports and stops all of them after the test. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'

const COMMAND = fileURLToPath(new URL('../../dist/plugins/cli.js', import.meta.url))
/** Long enough for a loaded machine. */
const PATIENT_MS = 240_000
/** Time after SIGINT before the second SIGINT. */
const STOP_LIMIT_MS = 10_000
/** Time after the second SIGINT before SIGKILL. */
const KILL_LIMIT_MS = 20_000

const running = new Set<RunningCommand>()
const folders: string[] = []
/** An interrupted test run leaves no process behind. */
process.once('exit', () => {
  for (const command of running) command.child.kill('SIGKILL')
})

/** How a process ended. */
export interface CommandEnd {
  /** Null if a signal ended it. */
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
  /** `performance.now()` */
  readonly atMs: number
}

/** One process of the command. */
export class RunningCommand {
  readonly child: ChildProcess
  readonly pid: number
  readonly ended: Promise<CommandEnd>
  /** Lines of both outputs in order of arrival. */
  readonly lines: string[] = []
  hasEnded = false
  readonly #outputs = { stdout: '', stderr: '' }
  #watchers: (() => void)[] = []

  /** Use `runCommand`. */
  constructor(child: ChildProcess) {
    this.child = child
    this.pid = child.pid as number
    this.#read(child.stdout as Readable, 'stdout')
    this.#read(child.stderr as Readable, 'stderr')
    running.add(this)
    this.ended = once(child, 'close').then(([code, signal]) => {
      this.hasEnded = true
      running.delete(this)
      this.#wake()
      return { code, signal, ...this.#outputs, atMs: performance.now() }
    })
  }

  /** Resolves with the first matching line, past lines included. @throws with all output after the timeout */
  async line(pattern: RegExp, limitMs = PATIENT_MS): Promise<RegExpMatchArray> {
    const until = performance.now() + limitMs
    const timer = setTimeout(() => this.#wake(), limitMs)
    try {
      for (;;) {
        for (const line of this.lines) {
          const match = line.match(pattern)
          if (match !== null) return match
        }
        if (this.hasEnded || performance.now() >= until)
          throw new Error(`no line like ${pattern} in:\n${this.lines.join('\n')}`)
        await new Promise<void>((resolve) => this.#watchers.push(resolve))
      }
    } finally {
      clearTimeout(timer)
    }
  }

  /** @returns `performance.now()` of the signal */
  signal(signal: NodeJS.Signals): number {
    this.child.kill(signal)
    return performance.now()
  }

  /** Sends SIGINT, SIGINT again, and then SIGKILL, which fails the test. */
  async stop(): Promise<CommandEnd> {
    const steps = [
      ['SIGINT', STOP_LIMIT_MS],
      ['SIGINT', KILL_LIMIT_MS],
      ['SIGKILL', KILL_LIMIT_MS],
    ] as const
    for (const [signal, limitMs] of steps) {
      if (this.hasEnded) break
      this.child.kill(signal)
      await Promise.race([this.ended, pause(limitMs)])
      if (signal === 'SIGKILL')
        throw new Error(`process ${this.pid} had to be killed:\n${this.lines.join('\n')}`)
    }
    return this.ended
  }

  /** Number of open files and sockets of the process. Linux only. */
  openFiles(): number {
    return readdirSync(`/proc/${this.pid}/fd`).length
  }

  #read(stream: Readable, name: 'stdout' | 'stderr'): void {
    stream.setEncoding('utf8').on('data', (text: string) => {
      this.#outputs[name] += text
    })
    createInterface({ input: stream }).on('line', (line) => {
      this.lines.push(line)
      this.#wake()
    })
  }

  #wake(): void {
    for (const watcher of this.#watchers.splice(0)) watcher()
  }
}

/** Starts `weir` with these arguments, without the environment variables of the gateway. */
export function runCommand(args: readonly string[], env: Record<string, string> = {}): RunningCommand {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(WEIR_|NODE_OPTIONS$|VITEST)/.test(name),
  )
  const child = spawn(process.execPath, [COMMAND, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...Object.fromEntries(inherited), ...env },
  })
  return new RunningCommand(child)
}

/** Ends every process started here in reverse order, and removes the folders. Call it after each test. */
export async function stopCommands(): Promise<void> {
  const ends = await Promise.allSettled([...running].reverse().map((command) => command.stop()))
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
  const failed = ends.find((end) => end.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}

/** A temporary folder, removed after the test. */
export function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'weir-flow-'))
  folders.push(folder)
  return folder
}

export interface BuiltSim {
  readonly url: string
  readonly command: RunningCommand
}

/** Starts `weir sim` on a free port. */
export async function startSim(...flags: string[]): Promise<BuiltSim> {
  const command = runCommand(['sim', '--port', '0', ...flags])
  const [, port] = await command.line(/"port":(\d+).*"simulated engine listening"/)
  return { url: `http://127.0.0.1:${port}`, command }
}

export interface BuiltGatewayOptions {
  /** Additional kernel settings. */
  readonly kernel?: Record<string, unknown>
  /** Added to auth, health, policies, proxy and workers. */
  readonly plugins?: Record<string, unknown>
  /** Workers of the configuration, in the format of POST /workers. */
  readonly workers?: readonly Record<string, unknown>[]
  readonly flags?: readonly string[]
}

/** A running `weir serve` and requests to it. */
export class BuiltGateway {
  readonly url: string
  readonly port: number
  readonly metricsUrl: string
  readonly command: RunningCommand

  /** Use `startBuiltGateway`. */
  constructor(command: RunningCommand, url: string, metricsUrl: string) {
    this.command = command
    this.url = url
    this.port = Number(new URL(url).port)
    this.metricsUrl = metricsUrl
  }

  /** Sends each request on a new connection, so that any thread may accept it. */
  get(path: string, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(this.url + path, { headers: { connection: 'close', ...headers } })
  }

  /** Like `get`, with a JSON body. */
  send(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Response> {
    return fetch(this.url + path, {
      method,
      headers: { connection: 'close', 'content-type': 'application/json', ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
    })
  }

  /**
   * Samples of the metrics listener by name and labels, as written there.
   *
   * @param types only families of these types, such as counter; default: all
   */
  async metrics(...types: readonly string[]): Promise<Map<string, number>> {
    const text = await (await fetch(this.metricsUrl, { headers: { connection: 'close' } })).text()
    const samples = new Map<string, number>()
    let type = ''
    for (const line of text.split('\n')) {
      if (line.startsWith('# TYPE ')) type = line.split(' ')[3]
      if (line === '' || line.startsWith('#') || (types.length > 0 && !types.includes(type))) continue
      const space = line.lastIndexOf(' ')
      samples.set(line.slice(0, space), Number(line.slice(space + 1)))
    }
    return samples
  }

  /** Requests in flight by worker URL, from GET /workers. */
  async loads(headers: Record<string, string> = {}): Promise<Record<string, number>> {
    const { workers } = (await (await this.get('/workers', headers)).json()) as {
      workers: { url: string; load: number }[]
    }
    return Object.fromEntries(workers.map(({ url, load }) => [url, load]))
  }
}

/** Sum of the samples of one metric over all labels. */
export function sumOf(samples: ReadonlyMap<string, number>, name: string): number {
  return [...samples].filter(([key]) => key.split('{')[0] === name).reduce((sum, [, value]) => sum + value, 0)
}

/** Two data threads on a free port, no probes; resolves when every worker of the configuration is ready. */
export async function startBuiltGateway(options: BuiltGatewayOptions = {}): Promise<BuiltGateway> {
  const { workers = [], plugins = {}, flags = [] } = options
  const { log, ...kernel } = (options.kernel ?? {}) as Record<string, object>
  const file = join(makeFolder(), 'weir.json')
  const config = {
    kernel: { threads: 2, port: 0, warmUp: false, log: { level: 'warn', ...log }, ...kernel },
    plugins: {
      auth: { auditLog: false },
      health: {},
      policies: {},
      chat: {},
      'http-workers': {},
      metrics: { port: 0 },
      ...plugins,
      workers: { workers, health: { disable_health_check: true }, ...(plugins.workers as object) },
    },
  }
  writeFileSync(file, JSON.stringify(config))
  const command = runCommand(['serve', '--config', file, ...flags])
  const gateway = await readyGateway(command)
  await until(
    async () => (await readiness(gateway)).healthy_workers === workers.length || workers.length === 0,
  )
  return gateway
}

/** Waits for the listen addresses in the output of a command. */
export async function readyGateway(command: RunningCommand): Promise<BuiltGateway> {
  const [, url] = await command.line(/^ {2}API\s+(http\S+)/)
  const [, metricsUrl] = await command.line(/^ {2}metrics\s+(http\S+)/)
  await command.line(/^ {2}workers/)
  return new BuiltGateway(command, url, metricsUrl)
}

async function readiness(gateway: BuiltGateway): Promise<{ healthy_workers?: number }> {
  return (await (await gateway.get('/readiness')).json()) as { healthy_workers?: number }
}

/** Polls until the check returns true. @throws after the timeout */
export async function until(
  check: () => boolean | Promise<boolean>,
  what: () => string = () => check.toString(),
): Promise<void> {
  const endsAtMs = performance.now() + PATIENT_MS
  while (!(await check())) {
    if (performance.now() > endsAtMs) throw new Error(`not within ${PATIENT_MS} ms: ${what()}`)
    await pause(10)
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
