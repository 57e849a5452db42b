/** More clients than kernel.http.maxConnections: no descriptor is missing, no core spins, and accepting resumes. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { startBuiltGateway, stopCommands, sumOf } from '../support/built-command.ts'
import { jsonAnswer, type ScriptedWorker, startScriptedWorker } from '../support/scripted-worker.ts'

let worker: ScriptedWorker
const sockets: Socket[] = []
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await stopCommands()
  await worker.close()
})

const chat = JSON.stringify({ model: 'm', messages: [] })
const REQUEST = `POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: ${chat.length}\r\n\r\n${chat}`

/** CPU time of a process so far, seconds. */
function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1].split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}

test('400 clients where 256 descriptors and 64 connections are allowed', async () => {
  worker = await startScriptedWorker({ models: ['m'] })
  const held = Promise.withResolvers<void>()
  worker.script('POST /v1/chat/completions', async () => {
    await held.promise
    return jsonAnswer({ object: 'chat.completion', choices: [] })
  })
  const gateway = await startBuiltGateway({
    kernel: {
      threads: 1,
      log: { level: 'info', access: false },
      http: { maxConnections: 64 },
      retry: { maxAttempts: 2 },
    },
    workers: [{ url: worker.url, models: [{ id: 'm' }], runtime_type: 'sglang' }],
  })
  const { pid } = gateway.command
  const scrape = 'GET /metrics HTTP/1.1\r\nhost: a\r\n'
  const metrics = connect(Number(new URL(gateway.metricsUrl).port), '127.0.0.1')
  sockets.push(metrics)
  execFileSync('prlimit', ['--pid', String(pid), '--nofile=256:256'])
  metrics.write(`${scrape}\r\n`)
  await once(metrics, 'data')
  for (let i = 0; i < 400; i++) {
    const socket = connect(gateway.port, '127.0.0.1').on('error', () => {})
    socket.write(REQUEST)
    socket.resume()
    sockets.push(socket)
  }
  await gateway.command.line(/connection limit of the thread reached/, 60_000)
  metrics.write(`${scrape}connection: close\r\n\r\n`)
  const page = (await metrics.toArray()).join('')
  expect(page).toMatch(/^weir_accept_paused 1$/m)
  expect(Number(/^weir_process_open_fds (\d+)$/m.exec(page)?.[1])).toBeLessThan(256)
  expect(page).toMatch(/^weir_process_max_fds 256$/m)
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  const before = cpuSeconds(pid)
  await new Promise((resolve) => setTimeout(resolve, 2_000))
  expect(cpuSeconds(pid) - before).toBeLessThan(1)
  held.resolve()
  for (const socket of sockets.splice(0)) socket.destroy()
  await expect.poll(async () => sumOf(await gateway.metrics(), 'weir_accept_paused')).toBe(0)
  expect((await gateway.send('POST', '/v1/chat/completions', { model: 'm', messages: [] })).status).toBe(200)
  const samples = await gateway.metrics()
  expect(sumOf(samples, 'weir_worker_cb_state')).toBe(0)
  expect(sumOf(samples, 'weir_process_max_fds')).toBe(256)
  expect(sumOf(samples, 'weir_process_open_fds')).toBeGreaterThan(20)
  const countOf = (text: string) => gateway.command.lines.filter((line) => line.includes(text)).length
  expect(countOf('gateway out of descriptors')).toBe(0)
  expect(countOf('connection limit of the thread reached')).toBe(1)
})
