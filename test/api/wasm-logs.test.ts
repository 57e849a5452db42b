/** The latest log lines of modules on the control plane. */
import { expect, test } from 'vitest'
import type { ModuleLog } from '../../plugins/wasm/statistics/module-logs.ts'
import { openWasmFleet, type WasmFleet } from './wasm-fleet.ts'

const read = async (fleet: WasmFleet, uuid: string) =>
  ((await (await fleet.get(`/wasm/${uuid}/logs`)).json()) as ModuleLog).lines

test('log lines and failures of a module are kept with their request, latest first', async () => {
  const fleet = await openWasmFleet({}, { plugins: { debug: {} } })
  const talker = await fleet.attach('talker', 'OnRequest', { do: 'log', secret: 'hidden-value' })
  const broken = await fleet.attach('broken', 'OnResponse', { do: 'trap' })
  expect(await read(fleet, talker)).toEqual([])
  const reply = await fleet.chat(undefined, { 'x-request-id': 'the-request' })
  expect(reply.status).toBe(200)
  await expect.poll(() => read(fleet, talker)).toHaveLength(3)
  const lines = await read(fleet, talker)
  const fixed = { time: expect.stringMatching(/^\d{4}-.*Z$/), request_id: 'the-request', thread: 0 }
  expect(lines).toEqual([
    { ...fixed, level: 'error', text: 'an error line' },
    { ...fixed, level: 'warn', text: 'a warning, ä' },
    { ...fixed, level: 'info', text: 'an info line' },
  ])
  await expect.poll(() => read(fleet, broken)).toHaveLength(1)
  expect(await read(fleet, broken)).toEqual([
    { ...fixed, level: 'warn', text: expect.stringMatching(/^call failed at OnResponse \(error\): /) },
  ])
  // The record of the request has the calls with their times.
  const record = await (await fleet.get('/debug/requests/the-request')).json()
  const call = { kind: 'module', start_ms: expect.any(Number), duration_ms: expect.any(Number) }
  expect(record).toMatchObject({
    requests: [
      {
        steps: [
          { ...call, name: 'talker at OnRequest', error: null },
          { ...call, name: 'broken at OnResponse', error: 'error' },
        ],
      },
    ],
  })
  await fleet.remove(talker)
  const removed = await fleet.get(`/wasm/${talker}/logs`)
  expect([removed.status, await removed.json()]).toMatchObject([404, { error: { code: 'module_not_found' } }])
})

test('only operators read log lines', async () => {
  const auth = { apiKey: 'serving', controlPlaneKeys: ['ops:Ops:admin:boss'] }
  const fleet = await openWasmFleet({}, { adminKey: 'boss', plugins: { auth } })
  const uuid = await fleet.attach('talker', 'OnRequest', { do: 'log' })
  for (const [key, status] of [
    ['serving', 401],
    ['boss', 200],
  ] as const)
    expect((await fleet.get(`/wasm/${uuid}/logs`, { authorization: `Bearer ${key}` })).status).toBe(status)
})
