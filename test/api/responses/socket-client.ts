/** A WebSocket client for responses, closed after its test. */
import { expect, onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { checkResponseEvents } from '../../support/response-events.ts'
import type { Json, ResponseJson } from './responses-fleet.ts'

const TERMINAL = new Set(['response.completed', 'response.incomplete', 'response.failed'])

export async function connect(url: string, model = 'test-model', key = 'x') {
  const ws = new WebSocket(`${url.replace('http', 'ws')}/v1/responses`, {
    headers: { authorization: `Bearer ${key}` },
  })
  onTestFinished(() => ws.terminate())
  const messages: ResponseJson[] = []
  ws.on('message', (data) => messages.push(JSON.parse(String(data))))
  await new Promise((resolve, reject) => {
    ws.once('open', resolve)
    ws.once('error', reject)
  })
  const send = (body: Json) => ws.send(JSON.stringify({ type: 'response.create', model, ...body }))
  return {
    ws,
    messages,
    send,
    /** Runs one turn: all its events up to the terminal one. */
    turn: async (body: Json): Promise<ResponseJson[]> => {
      const first = messages.length
      send(body)
      const isEnd = ({ type, status }: ResponseJson) =>
        TERMINAL.has(type) || (type === 'error' && status !== undefined)
      await expect.poll(() => messages.slice(first).some(isEnd)).toBe(true)
      return messages.slice(first)
    },
  }
}

export function check(events: readonly ResponseJson[]) {
  return checkResponseEvents(
    events.map((event) => ({ event: event.type, data: JSON.stringify(event) })),
    { isSocket: true },
  )
}
