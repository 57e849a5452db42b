/** A gateway with responses in front of scripted chat workers, with an in-memory store. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { definePlugin, History, type HistoryService, Type } from '#kernel'
import { CHAT } from '../../support/chat-script.ts'
import { checkResponseEvents } from '../../support/response-events.ts'
import type { Script } from '../../support/scripted-worker.ts'
import { openSse } from '../../support/sse-client.ts'
import { type Fleet, type FleetOptions, openFleet } from '../fleet.ts'

export const RESPONSES = '/v1/responses'

export * from '../../support/chat-script.ts'

export type Json = Record<string, unknown>

// biome-ignore lint/suspicious/noExplicitAny: responses of any shape, for tests that inspect them
export type ResponseJson = any

export interface ResponsesFleet extends Fleet {
  /** @throws if the status is not the expected one */
  create(body: Json, status?: number): Promise<ResponseJson>
  /** A streamed create whose event order is checked. */
  stream(body: Json): Promise<ReturnType<typeof checkResponseEvents>>
  /** Chat bodies that the first worker received. */
  asked(): ResponseJson[]
  fetchJson(
    method: string,
    path: string,
    status?: number,
    headers?: Record<string, string>,
  ): Promise<ResponseJson>
}

/** Removed after the test, and after gateways that the test starts later: vitest calls these functions in reverse order. */
export function newDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'weir-responses-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

export async function openResponses(script?: Script, options: FleetOptions = {}): Promise<ResponsesFleet> {
  const fleet = await openFleet({
    ...options,
    plugins: {
      storage: { dir: newDirectory() },
      history: {},
      responses: {},
      ...options.plugins,
    },
    kernel: { retry: { initialBackoffMs: 1, maxBackoffMs: 1 }, ...options.kernel },
  })
  if (script !== undefined) fleet.workers[0].script(CHAT, script)
  const fetchJson = async (method: string, path: string, status = 200, headers = {}) => {
    const reply = await fetch(fleet.gateway.url + path, { method, headers })
    const text = await reply.text()
    if (reply.status !== status) throw new Error(`${method} ${path}: ${reply.status} ${text}`)
    return JSON.parse(text)
  }
  return {
    ...fleet,
    fetchJson,
    create: async (body, status = 200) => {
      const reply = await fleet.post(RESPONSES, { model: 'test-model', ...body })
      const text = await reply.text()
      if (reply.status !== status) throw new Error(`${reply.status} ${text}`)
      return JSON.parse(text)
    },
    stream: async (body) => {
      const stream = openSse(fleet.gateway.url + RESPONSES, {
        body: { model: 'test-model', stream: true, ...body },
      })
      await stream.done
      if (stream.status !== 200) throw new Error(`${stream.status} ${stream.text()}`)
      return checkResponseEvents(stream.events)
    },
    asked: () => fleet.workers[0].requestsTo(CHAT).map((request) => request.json()),
  }
}

/** Exposes the history service of the gateway to a test. */
export function historyPeek() {
  let history: HistoryService | undefined
  const plugin = definePlugin({
    manifest: {
      name: 'peek',
      version: '0.1.0',
      description: 'test',
      uses: [History],
      config: Type.Object({}),
    },
    register: (host) => {
      history = host.use(History)
    },
  })
  return { plugin, get: () => history as HistoryService }
}
