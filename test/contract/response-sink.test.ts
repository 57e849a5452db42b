/** The two response sinks against their contract: a client's connection, and an in-memory response on a WebSocket. */
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { WebSocket } from 'ws'
import { PATH, responseSinkContract } from './response-sink-contract.ts'

responseSinkContract('HTTP', async (gateway) => {
  const outgoing = request(gateway.url + PATH, { method: 'POST' })
  outgoing.on('error', () => {})
  outgoing.end('{"model":"m"}')
  let text = ''
  const response = new Promise<IncomingMessage>((resolve) => outgoing.once('response', resolve))
  const over = new Promise<void>((resolve) => outgoing.once('close', resolve))
  void response.then((incoming) => {
    incoming.on('error', () => {})
    incoming.on('data', (chunk) => {
      text += chunk
    })
  })
  return {
    text: () => text,
    over,
    pause: () => void response.then((incoming) => incoming.pause()),
    resume: () => void response.then((incoming) => incoming.resume()),
    leave: () => outgoing.destroy(),
  }
})

responseSinkContract('WebSocket', async (gateway) => {
  const ws = new WebSocket(gateway.url.replace('http', 'ws') + PATH)
  const messages: string[] = []
  ws.on('message', (data: Buffer) => messages.push(data.toString()))
  ws.on('error', () => {})
  const over = new Promise<void>((resolve) => ws.once('close', resolve))
  await once(ws, 'open')
  ws.send('{"model":"m"}')
  return {
    text: () => messages.join(''),
    over,
    pause: () => ws.pause(),
    resume: () => ws.resume(),
    leave: () => ws.terminate(),
  }
})
