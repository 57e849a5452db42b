/** Built gateways of one mesh as processes, which tests kill, freeze and start again under their name and port. */
import { type BuiltGateway, startBuiltGateway, until } from './built-command.ts'
import { freePort } from './free-port.ts'

const SECRET = 'abcdefghijklmnopqrstuvwxyz'
/** Longer than a busy machine needs; a frozen engine is noticed after it. */
export const ENGINE_TIMEOUT_MS = 5_000

export interface ProcessOptions {
  /** Of the engine. */
  readonly url: string
  readonly mesh?: string
  readonly kernel?: Record<string, unknown>
  readonly plugins?: Record<string, unknown>
  readonly workers?: readonly Record<string, unknown>[]
}

interface Listed {
  readonly node_name: string
  readonly nodes: readonly { readonly name: string; readonly status: string; readonly version: number }[]
  readonly stores: Record<string, number>
  readonly engine: { readonly state: string; readonly revision: number }
}

export class MeshProcess {
  readonly name: string
  readonly port: number
  readonly #options: ProcessOptions
  #gateway: BuiltGateway | null = null

  /** Use `startMeshProcess`. */
  constructor(name: string, port: number, options: ProcessOptions) {
    this.name = name
    this.port = port
    this.#options = options
  }

  /** The running process. */
  get gateway(): BuiltGateway {
    if (this.#gateway === null) throw new Error(`${this.name} does not run`)
    return this.#gateway
  }

  async start(): Promise<void> {
    const { url, mesh = 'test', kernel = {}, plugins = {}, workers } = this.#options
    this.#gateway = await startBuiltGateway({
      kernel: { threads: 1, port: this.port, log: { level: 'info' }, ...kernel },
      plugins: {
        mesh: { name: this.name, mesh, secret: SECRET },
        'mesh-valkey': { url, timeoutMs: ENGINE_TIMEOUT_MS },
        ...plugins,
      },
      ...(workers && { workers }),
    })
  }

  async kill(): Promise<void> {
    const { command } = this.gateway
    command.signal('SIGKILL')
    await command.ended
  }

  freeze(): void {
    this.gateway.command.signal('SIGSTOP')
  }

  resume(): void {
    this.gateway.command.signal('SIGCONT')
  }

  async status(): Promise<Listed> {
    return (await (await this.gateway.get('/ha/status')).json()) as Listed
  }

  /** Status that this gateway shows of another one; undefined if it does not list it. */
  async sees(name: string): Promise<string | undefined> {
    return (await this.status()).nodes.find((node) => node.name === name)?.status
  }

  /** Of a configuration key; undefined without one. */
  async read(key: string): Promise<string | undefined> {
    const response = await fetch(`${this.gateway.url}/ha/config/${key}`)
    return ((await response.json()) as { value?: string }).value
  }

  /** @returns status of the response */
  async write(key: string, value: string): Promise<number> {
    return (await this.call('POST', '/ha/config', { key, value })).status
  }

  async call(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<{ status: number; text: string }> {
    const response = await fetch(this.gateway.url + path, {
      method,
      headers: { 'content-type': 'application/json', ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
    })
    return { status: response.status, text: await response.text() }
  }
}

/** Several under the names gw-1, gw-2 and so on; resolves when each sees all of them. */
export async function startMeshProcesses(count: number, options: ProcessOptions): Promise<MeshProcess[]> {
  const all: MeshProcess[] = []
  for (let number = 1; number <= count; number += 1)
    all.push(new MeshProcess(`gw-${number}`, await freePort(), options))
  await Promise.all(all.map((one) => one.start()))
  await until(async () => {
    const views = await Promise.all(all.map((one) => one.status()))
    return views.every(({ nodes }) => nodes.filter(({ status }) => status === 'Alive').length === count)
  })
  return all
}
