/** Two gateways over one PostgreSQL: one ledger, one budget, and nothing lost or counted twice when the server is killed. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type PostgresServer, postgresSkipReason, startPostgres } from '../support/postgres-server.ts'
import { jsonAnswer } from '../support/scripted-worker.ts'
import { type Fleet, openFleet } from './fleet.ts'

const ADMIN = { authorization: 'Bearer admin-key' }
const A = { authorization: 'Bearer key-a' }
const CHAT = '/v1/chat/completions'
const body = { model: 'test-model', messages: [{ role: 'user', content: 'hi' }] }

describe.skipIf(postgresSkipReason !== null)('with a server', () => {
  let server: PostgresServer
  let schemas = 0
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server?.remove())

  async function openTwo(usage: object): Promise<[Fleet, Fleet]> {
    const schema = `usage_${++schemas}`
    const open = async () => {
      const fleet = await openFleet({
        plugins: {
          auth: { apiKey: 'admin-key', tenantKeys: ['a:key-a'] },
          postgres: { url: server.url, schema },
          usage,
        },
      })
      fleet.workers[0].script(
        `POST ${CHAT}`,
        jsonAnswer({ choices: [], usage: { prompt_tokens: 4, completion_tokens: 6 } }),
      )
      return fleet
    }
    return [await open(), await open()]
  }

  const send = async (fleet: Fleet): Promise<number> => {
    const response = await fleet.post(CHAT, body, A)
    await response.text()
    return response.status
  }
  const total = async (fleet: Fleet) =>
    ((await (await fleet.get('/usage', ADMIN)).json()) as { total?: Record<string, number> }).total

  test('both add to the same records', async () => {
    const [one, other] = await openTwo({ durable: true })
    const statuses = await Promise.all(
      Array.from({ length: 40 }, (_, index) => send(index % 2 === 0 ? one : other)),
    )
    expect(new Set(statuses)).toEqual(new Set([200]))
    expect(await total(one)).toMatchObject({ requests: 40, input_tokens: 160, output_tokens: 240 })
    expect(await total(other)).toMatchObject({ requests: 40 })
  })

  test('a budget counts the usage of both', async () => {
    const [one, other] = await openTwo({ budgets: [{ tenant: 'auth:a', tokens: 40 }] })
    for (let i = 0; i < 4; i++) expect(await send(one)).toBe(200)
    await total(one)
    expect(await send(other)).toBe(429)
  })

  test('a killed server: responses fail or are in the ledger; all are there when the server is back', async () => {
    const [one] = await openTwo({ durable: true })
    const answered = { ok: 0, refused: 0 }
    let isOver = false
    const lanes = Array.from({ length: 8 }, async () => {
      while (!isOver) {
        const status = await send(one)
        if (status === 200) answered.ok++
        else {
          expect(status).toBe(503)
          answered.refused++
        }
      }
    })
    for (let kill = 0; kill < 3; kill++) {
      const before = answered.ok
      await vi.waitFor(() => expect(answered.ok).toBeGreaterThan(before + 50), 30_000)
      await server.kill()
      await server.start()
    }
    const before = answered.ok
    await vi.waitFor(() => expect(answered.ok).toBeGreaterThan(before + 50), 30_000)
    isOver = true
    await Promise.all(lanes)
    // The worker has answered all of them, also those whose response failed because of the store.
    const requests = answered.ok + answered.refused
    await vi.waitFor(
      async () =>
        expect(await total(one)).toMatchObject({
          requests,
          input_tokens: 4 * requests,
          output_tokens: 6 * requests,
        }),
      30_000,
    )
  })
})
