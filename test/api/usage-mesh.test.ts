/** Budgets of two gateways with stores of their own, which share them through the mesh engine. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { jsonAnswer } from '../support/scripted-worker.ts'
import { startValkey, type ValkeyServer, valkeySkipReason } from '../support/valkey-server.ts'
import { type Fleet, openFleet } from './fleet.ts'

const CHAT = '/v1/chat/completions'
const ADMIN = { authorization: 'Bearer admin-key' }
const A = { authorization: 'Bearer key-a' }
const BODY = { model: 'test-model', messages: [{ role: 'user', content: 'hi' }] }
/** 16 tokens. */
const USAGE = { prompt_tokens: 10, completion_tokens: 6 }

describe.skipIf(valkeySkipReason !== null)('a budget of two gateways', () => {
  let server: ValkeyServer
  let dir: string
  beforeEach(async () => {
    dir = mkdtempSync(join(tmpdir(), 'weir-usage-'))
    server = await startValkey()
  })
  afterEach(async () => {
    await server.remove()
    rmSync(dir, { recursive: true, force: true })
  })

  async function openOne(name: string): Promise<Fleet> {
    const fleet = await openFleet({
      plugins: {
        auth: { apiKey: 'admin-key', tenantKeys: ['a:key-a'] },
        storage: { dir: join(dir, name) },
        usage: { budgets: [{ tenant: 'auth:a', tokens: 40 }] },
        mesh: { name, secret: 'abcdefghijklmnopqrstuvw' },
        'mesh-valkey': { url: server.url, timeoutMs: 5_000 },
      },
    })
    fleet.workers[0].script(`POST ${CHAT}`, jsonAnswer({ choices: [], usage: USAGE }))
    return fleet
  }

  const send = async (fleet: Fleet) => (await fleet.post(CHAT, BODY, A)).status

  test('is used up by the requests of both', async () => {
    const fleets = [await openOne('gw-1'), await openOne('gw-2')]
    expect(await send(fleets[0])).toBe(200)
    expect(await send(fleets[1])).toBe(200)
    expect(await send(fleets[0])).toBe(200)
    // 48 of 40 tokens, of which this gateway has used 16; it learns within a second.
    await expect.poll(() => send(fleets[1]), { interval: 300 }).toBe(429)
    await expect.poll(() => send(fleets[0]), { interval: 300 }).toBe(429)
  })

  test('counts what was used while the engine was away, once it is back', async () => {
    const fleets = [await openOne('gw-1'), await openOne('gw-2')]
    await server.kill()
    for (let at = 0; at < 3; at++) expect(await send(fleets[0])).toBe(200)
    expect(await send(fleets[0])).toBe(429)
    await server.start()
    for (const { get } of fleets)
      await expect
        .poll(async () => (await get('/ha/health', ADMIN)).json())
        .toMatchObject({ status: 'healthy' })
    // The usage is sent again after a second. Two requests of its own are within the budget of the other gateway.
    let status = 200
    for (const waitMs of [1_500, 15_000]) {
      if (status === 200) await pause(waitMs)
      status = await send(fleets[1])
    }
    expect(status).toBe(429)
  })
})
