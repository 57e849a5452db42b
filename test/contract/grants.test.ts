/** Grants of shared limits, and counters: the script of Valkey and the local engine follow the same rules. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { GrantRequest } from '#kernel'
import { GrantWindows } from '../../plugins/mesh/mesh/local-engine.ts'
import { ValkeyEngine } from '../../plugins/mesh/valkey/valkey-engine.ts'
import { engineConfig } from '../support/engine-config.ts'
import { startValkey, type ValkeyServer, valkeySkipReason } from '../support/valkey-server.ts'

/** No window of this length ends during the test. */
const LONG_MS = 1_000 * 86_400_000

describe.skipIf(valkeySkipReason !== null)('grants', () => {
  let server: ValkeyServer
  let engine: ValkeyEngine

  beforeAll(async () => {
    server = await startValkey()
    engine = new ValkeyEngine(engineConfig(server.url, 5_000), 'weir:{test}:', () => undefined)
    await engine.connect('memory')
  })
  afterAll(async () => {
    await engine?.close()
    await server?.remove()
  })

  test('of the script and of the local engine are equal', async () => {
    let run = 0
    const step = fc.record({
      bucket: fc.constantFrom('a', 'b'),
      need: fc.nat({ max: 20 }),
      spare: fc.nat({ max: 50 }),
      isReturn: fc.boolean(),
      isOfThisWindow: fc.boolean(),
    })
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 200 }),
        fc.array(step, { maxLength: 30 }),
        async (limit, steps) => {
          const local = new GrantWindows()
          const name = `run-${run++}-`
          const now = Math.floor(Date.now() / LONG_MS)
          for (const { bucket, need, spare, isReturn, isOfThisWindow } of steps) {
            const request: GrantRequest = {
              bucket: name + bucket,
              limit,
              windowMs: LONG_MS,
              need: isReturn ? 0 : need,
              want: isReturn ? -spare : need + spare,
              window: isOfThisWindow ? now : now - 1,
            }
            const { endsInMs, ...granted } = local.grant(request, Date.now())
            const [{ endsInMs: theirsMs, ...theirs }] = await engine.grant([request])
            expect(theirs).toEqual(granted)
            expect(Math.abs(theirsMs - endsInMs)).toBeLessThan(10_000)
          }
        },
      ),
      { numRuns: 50 },
    )
  })

  test('are counted by window, in one step for several buckets', async () => {
    const ask = (bucket: string, want: number): GrantRequest => ({
      bucket,
      limit: 10,
      windowMs: 200,
      need: want,
      want,
      window: 0,
    })
    const byWindow = new Map<number, number>()
    const endsAtMs = performance.now() + 700
    while (performance.now() < endsAtMs) {
      const [first, other] = await engine.grant([ask('short', 3), ask('other', 0)])
      byWindow.set(first.window, (byWindow.get(first.window) ?? 0) + first.granted)
      expect(other).toMatchObject({ granted: 0, left: 10 })
      expect(first.endsInMs).toBeGreaterThanOrEqual(0)
      expect(first.endsInMs).toBeLessThanOrEqual(200)
    }
    expect(byWindow.size).toBeGreaterThanOrEqual(3)
    for (const granted of [...byWindow.values()].slice(0, -1)) expect(granted).toBe(10)
  })

  test('counters count each sequence number of a writer once', async () => {
    const add = (counter: string, amount: number) => ({ counter, add: amount, keepMs: 60_000 })
    const changes = [add('x', 5), add('y', 2 ** 45)]
    expect(await engine.addToCounters('w1', 1, changes)).toEqual([5, 2 ** 45])
    expect(await engine.addToCounters('w1', 1, changes)).toEqual([5, 2 ** 45])
    expect(await engine.addToCounters('w2', 1, [add('x', 1), add('z', 0)])).toEqual([6, 0])
    expect(await engine.addToCounters('w1', 2, [add('x', -2)])).toEqual([4])
  })
})
