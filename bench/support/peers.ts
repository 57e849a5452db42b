/** Other gateways that are installed on this machine, each in front of one simulated worker. */
import { execFileSync } from 'node:child_process'
import { descendants, freePort, StopWaiting, startChild, waitUntil } from './process.ts'
import { chatBody, REQUEST_HEADERS } from './request-bytes.ts'
import type { Subject } from './subject.ts'

const START_LIMIT_MS = 90_000
const VARIABLE = /^PEER_([A-Z0-9_]+)$/
const COMMON = '--host 127.0.0.1 --port {port} --worker-urls {worker} --policy round_robin'

/** A gateway and the command that starts it. */
export interface Peer {
  readonly name: string
  /**
   * Program and arguments, separated by spaces. `{port}` is the port to listen on, `{worker}` the URL of the worker, `{free}`
   * a port for anything else.
   */
  readonly command: string
}

/** Those that are measured if their program is on PATH. The first word is the program and its package on PyPI. */
const KNOWN: readonly string[] = [
  `smg launch ${COMMON} --prometheus-port {free} --log-level warn`,
  `sglang-router launch ${COMMON} --prometheus-port {free} --log-level warn`,
  `vllm-router ${COMMON} --prometheus-port {free} --log-level warning`,
  'litellm --host 127.0.0.1 --port {port} --model openai/bench --alias bench --api_base {worker}/v1',
]

/** Known peers on PATH, and those of variables `PEER_NAME`, which replace known ones of that name. */
export function findPeers(env: NodeJS.ProcessEnv): Peer[] {
  const given = Object.entries(env).flatMap(([variable, command]) => {
    const name = VARIABLE.exec(variable)?.[1].toLowerCase().replaceAll('_', '-')
    return name === undefined || !command ? [] : [{ name, command }]
  })
  const known = KNOWN.map((command) => ({ name: programOf(command), command }))
  return [
    ...given,
    ...known.filter((peer) => !given.some(({ name }) => name === peer.name) && isInstalled(peer.name)),
  ]
}

/** Resolves when the peer serves a chat of the worker. @throws after 90 s, or if it ends, with its error output */
export async function startPeer({ name, command }: Peer, workerPort: number): Promise<Subject> {
  const port = await freePort()
  const values = { port, worker: `http://127.0.0.1:${workerPort}`, free: await freePort() }
  const [program, ...args] = command
    .split(' ')
    .map((word) =>
      word.replace(/\{(port|worker|free)\}/g, (_, key: keyof typeof values) => String(values[key])),
    )
  // One that logs each request would wait for a reader of its output.
  const quiet = ['-c', 'exec "$@" >/dev/null', 'sh', program, ...args]
  const child = startChild('sh', quiet, { OPENAI_API_KEY: 'none' })
  const body = chatBody({ stream: false, bodyBytes: 250 })
  await waitUntil(`${name} serves a chat`, START_LIMIT_MS, async () => {
    if (!child.isRunning()) throw new StopWaiting(`${command} ended:\n${child.errors()}`)
    const url = `http://127.0.0.1:${port}/v1/chat/completions`
    return (await fetch(url, { method: 'POST', headers: REQUEST_HEADERS, body })).ok
  })
  const stop = async () => {
    // Some leave processes that hold the output open.
    for (const pid of descendants(child.pid)) process.kill(pid, 'SIGKILL')
    await child.stop()
  }
  return { name, port, pid: child.pid, stop }
}

const programOf = (command: string) => command.slice(0, command.indexOf(' '))

function isInstalled(program: string): boolean {
  try {
    execFileSync('which', [program], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
