/** Gateways of one mesh in this process, each behind a byte proxy to its own Valkey server; ended after the test. */
import { afterAll, afterEach, beforeAll } from 'vitest'
import { type ByteProxy, openByteProxy } from '../../support/byte-proxy.ts'
import { startGateway, type TestGateway } from '../../support/gateway.ts'
import { startValkey, type ValkeyServer } from '../../support/valkey-server.ts'

export const ROOT = { authorization: 'Bearer root' }
export const USER = { authorization: 'Bearer low' }
export const SECRET = 'abcdefghijklmnopqrstuvwxyz'
const AUTH = {
  apiKey: 'api-key',
  controlPlaneKeys: ['ops:Ops:admin:root', 'dev:Dev:user:low'],
  auditLog: false,
}
/** Of the API, as tests use it. */
export interface Status {
  node_name: string
  node_count: number
  nodes: { name: string; status: string; version: number; [field: string]: unknown }[]
  stores: Record<string, number>
  engine: { kind: string; state: string; revision: number }
  config_differences: string[]
}

export interface Reply {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: bodies are asserted field by field
  readonly body: any
}

export interface MeshGateway {
  readonly name: string
  readonly url: string
  readonly mesh: string
  readonly gateway: TestGateway
  /** To the engine; null alone. */
  readonly proxy: ByteProxy | null
  /** With the admin key; a string is sent as it is. */
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Reply>
  status(): Promise<Status>
  stop(): Promise<void>
}

export interface MeshOptions {
  readonly mesh?: string
  readonly plugins?: Record<string, unknown>
  readonly kernel?: Record<string, unknown>
  readonly settings?: Record<string, unknown>
  /** Name and password for the engine. */
  readonly user?: string
}

const open: MeshGateway[] = []
let meshes = 0

/** Ends the gateways that a test has opened. */
export async function stopMesh(): Promise<void> {
  await Promise.all(open.splice(0).map((one) => one.stop()))
}

/** A server for the tests of this file, ended after them; gateways end after each test. */
export function useValkey(): { readonly server: ValkeyServer } {
  let server: ValkeyServer | null = null
  beforeAll(async () => {
    server = await startValkey()
  })
  afterEach(stopMesh)
  afterAll(() => server?.remove())
  return {
    get server() {
      if (server === null) throw new Error('the server has not started')
      return server
    },
  }
}

/** A mesh name of its own for each test, since tests share a server. */
export function newMesh(): string {
  meshes += 1
  return `test-${process.pid}-${meshes}`
}

/** @param server null for a gateway without an engine */
export async function openGateway(
  name: string,
  server: ValkeyServer | null,
  { mesh = newMesh(), plugins = {}, kernel, settings, user }: MeshOptions = {},
): Promise<MeshGateway> {
  const proxy = server === null ? null : await openByteProxy(server.port)
  const gateway = await startGateway({
    kernel: { ...kernel },
    plugins: {
      auth: AUTH,
      health: {},
      policies: {},
      chat: {},
      messages: {},
      limits: {},
      workers: { health: { disable_health_check: true } },
      mesh: { name, mesh, ...(server !== null && { secret: SECRET }), ...settings },
      ...(proxy !== null && {
        'mesh-valkey': {
          url: `redis://${user === undefined ? '' : `${user}@`}127.0.0.1:${proxy.port}`,
          // A busy machine answers late; servers that are gone refuse connections at once.
          timeoutMs: 5_000,
        },
      }),
      ...plugins,
    },
  })
  let hasStopped = false
  const call: MeshGateway['call'] = async (method, path, body, headers = ROOT) => {
    const isText = typeof body === 'string'
    const response = await fetch(gateway.url + path, {
      method,
      headers: { connection: 'close', 'content-type': 'application/json', ...headers },
      body: body === undefined ? undefined : isText ? body : JSON.stringify(body),
    })
    const text = await response.text()
    return {
      headers: response.headers,
      status: response.status,
      text,
      body: text.startsWith('{') || text.startsWith('[') ? JSON.parse(text) : null,
    }
  }
  const one: MeshGateway = {
    name,
    url: gateway.url,
    mesh,
    gateway,
    proxy,
    call,
    status: async () => (await call('GET', '/ha/status')).body as Status,
    stop: async () => {
      if (hasStopped) return
      hasStopped = true
      await gateway.stop()
      await proxy?.close()
    },
  }
  open.push(one)
  return one
}

/** gw-1 to gw-3 on the server; gw-1 without one. Resolves when each sees all of them. */
export async function openMesh(
  server: ValkeyServer | null,
  options: MeshOptions = {},
): Promise<MeshGateway[]> {
  const mesh = options.mesh ?? newMesh()
  const names = server === null ? ['gw-1'] : ['gw-1', 'gw-2', 'gw-3']
  const all: MeshGateway[] = []
  for (const name of names) all.push(await openGateway(name, server, { ...options, mesh }))
  for (const one of all) await eventually(async () => (await one.status()).nodes.length === names.length)
  return all
}

/** What tests wait for takes seconds; a busy machine may need a minute. */
const PATIENT_MS = 90_000

/** @returns milliseconds until the check returned true. @throws Error after 90 seconds */
export async function eventually(check: () => Promise<boolean> | boolean): Promise<number> {
  const startedAtMs = performance.now()
  for (;;) {
    if (await check()) return performance.now() - startedAtMs
    if (performance.now() - startedAtMs > PATIENT_MS) throw new Error(`not within ${PATIENT_MS} ms: ${check}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** Status that a gateway shows of another one; undefined if it does not list it. */
export async function statusOf(viewer: MeshGateway, name: string): Promise<string | undefined> {
  return (await viewer.status()).nodes.find((node) => node.name === name)?.status
}
