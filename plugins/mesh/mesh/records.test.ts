/** Records of several gateways on one engine: any interleaving of changes, lost notices and reads ends the same everywhere. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type EngineRecord, MESH_INTAKE } from '#kernel'
import { LocalEngine } from './local-engine.ts'
import { IntakeUse, Records } from './records.ts'

/** An engine for several gateways: the records of the local one, and the log of its changes. */
class SharedEngine {
  readonly log: EngineRecord[] = []
  readonly #engine = new LocalEngine(undefined)

  async write(change: Parameters<LocalEngine['write']>[0]) {
    const done = await this.#engine.write(change)
    if ('revision' in done) this.log.push({ ...change, revision: done.revision })
    return done
  }

  async readAll() {
    const { records, revision } = await this.#engine.readAll()
    return { records, revision }
  }
}

class Gateway {
  readonly records: Records<number>
  readonly seen: [string, number | undefined][] = []
  readonly #engine: SharedEngine
  #position = 0

  constructor(engine: SharedEngine) {
    this.#engine = engine
    this.records = new Records<number>('kind', {
      write: (change) => engine.write(change),
      onError: (error) => {
        throw error
      },
    })
    this.records.isLive = true
    this.records.watch((id, record) => this.seen.push([id, record?.value]))
  }

  /** Reads some of the log. */
  follow(count: number): void {
    for (const change of this.#engine.log.slice(this.#position, this.#position + count))
      this.records.apply(change)
    this.#position = Math.min(this.#engine.log.length, this.#position + count)
  }

  async readAll(): Promise<void> {
    const { records, revision } = await this.#engine.readAll()
    this.records.replace(records, revision)
  }

  get values(): Record<string, number> {
    return Object.fromEntries([...this.records.all].map(([id, { value }]) => [id, value]).sort())
  }
}

const id = fc.constantFrom('a', 'b', 'c')
const at = fc.nat(2)
const step = fc.oneof(
  fc.record({ do: fc.constant('add' as const), at, id, by: fc.integer({ min: 1, max: 9 }) }),
  fc.record({ do: fc.constant('remove' as const), at, id }),
  fc.record({ do: fc.constant('follow' as const), at, count: fc.nat(5) }),
  fc.record({ do: fc.constant('readAll' as const), at }),
)

describe('records', () => {
  test('no change is lost, whatever each gateway has read before, and all gateways end equal', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const engine = new SharedEngine()
        const gateways = [new Gateway(engine), new Gateway(engine), new Gateway(engine)]
        const expected = new Map<string, number>()
        for (const one of steps) {
          const gateway = gateways[one.at]
          if (one.do === 'follow') gateway.follow(one.count)
          else if (one.do === 'readAll') await gateway.readAll()
          else if (one.do === 'remove') {
            await gateway.records.change(one.id, () => undefined)
            // A gateway that does not know the record has nothing to remove.
            if (!engine.log.some((change) => change.id === one.id)) expected.delete(one.id)
            const last = engine.log.findLast((change) => change.id === one.id)
            if (last?.value === null) expected.delete(one.id)
          } else {
            await gateway.records.change(one.id, (current = 0) => current + one.by)
            expected.set(one.id, (expected.get(one.id) ?? 0) + one.by)
          }
        }
        for (const gateway of gateways) {
          gateway.follow(Number.POSITIVE_INFINITY)
          expect(gateway.values).toEqual(Object.fromEntries([...expected].sort()))
          // Watchers have seen the same.
          const last = new Map(gateway.seen)
          for (const [name, value] of last) expect(value).toBe(expected.get(name))
        }
      }),
      { numRuns: 300 },
    )
  })

  test('a change that changes nothing is not written, and an exception cancels it', async () => {
    const engine = new SharedEngine()
    const records = new Records<object>('kind', {
      write: (change) => engine.write(change),
      onError: () => undefined,
    })
    await records.change('a', () => ({ b: 1 }))
    await records.change('a', (current) => current)
    await records.change('c', () => undefined)
    await expect(
      records.change('a', () => {
        throw new Error('no')
      }),
    ).rejects.toThrow('no')
    expect(engine.log).toHaveLength(1)
  })

  test('a watcher that throws does not keep others from the change', async () => {
    const engine = new SharedEngine()
    const errors: unknown[] = []
    const records = new Records<number>('kind', {
      write: (change) => engine.write(change),
      onError: (error) => errors.push(error),
    })
    const seen: string[] = []
    records.isLive = true
    records.watch(() => {
      throw new Error('broken')
    })
    records.watch((name) => seen.push(name))
    await records.change('a', () => 1)
    expect([seen, errors.length]).toEqual([['a'], 1])
  })

  describe('limits', () => {
    const small = { records: 2, bytes: 40 }
    const openLimited = (engine: SharedEngine) =>
      new Records<string>('kind', {
        write: (change) => engine.write(change),
        onError: (error) => {
          throw error
        },
        limits: small,
      })

    test('an addition above a limit of its kind is rejected, also beside others that are being written', async () => {
      const records = openLimited(new SharedEngine())
      const done = await Promise.allSettled(['a', 'b', 'c'].map((name) => records.change(name, () => 'x')))
      expect(done.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected'])
      await expect(records.change('c', () => 'x')).rejects.toMatchObject({
        status: 507,
        message: 'the mesh takes at most 2 records of the kind kind; remove some, or make them smaller',
      })
      await records.change('a', () => undefined)
      await records.change('c', () => 'x')
      expect([...records.all.keys()]).toEqual(['b', 'c'])
    })

    test('a change that grows a record above the bytes of its kind is rejected; a smaller value is not', async () => {
      const records = openLimited(new SharedEngine())
      await records.change('a', () => 'x'.repeat(20))
      await expect(records.change('b', () => 'x'.repeat(20))).rejects.toThrow('at most 40 bytes of the kind')
      await expect(records.change('a', () => 'x'.repeat(40))).rejects.toMatchObject({ status: 507 })
      await records.change('a', () => 'x')
      await records.change('b', () => 'x'.repeat(20))
      expect(records.all.get('b')?.value).toHaveLength(20)
    })

    test('records of other gateways above the own limits are taken', async () => {
      const records = openLimited(new SharedEngine())
      for (const id of ['a', 'b', 'c'])
        records.apply({ kind: 'kind', id, revision: 1, value: '"long enough"' })
      expect(records.all.size).toBe(3)
      await expect(records.change('d', () => 'x')).rejects.toMatchObject({ status: 507 })
    })

    test('a record without room in this gateway is not taken, and can be written anew', async () => {
      const engine = new SharedEngine()
      const errors: unknown[] = []
      const intake = new IntakeUse()
      const records = new Records<string>('kind', {
        write: (change) => engine.write(change),
        onError: (error) => errors.push(error),
        intake,
      })
      const tooLarge = JSON.stringify('x'.repeat(MESH_INTAKE.recordBytes))
      const written = await engine.write({ kind: 'kind', id: 'a', expected: 0, value: tooLarge })
      expect(written).toMatchObject({ revision: 1 })
      intake.bytes = MESH_INTAKE.allBytes - 10
      for (const change of engine.log) records.apply(change)
      records.apply({ kind: 'kind', id: 'b', revision: 2, value: '"0123456789"' })
      records.apply({ kind: 'kind', id: 'c', revision: 3, value: '"0"' })
      expect([[...records.all.keys()], errors.length]).toEqual([['c'], 2])
      intake.bytes = 0
      await records.change('a', (current) => `${current} again`)
      expect(records.all.get('a')?.value).toBe('undefined again')
    })
  })
})

test('a value that is not valid counts as absent, and can be written anew', async () => {
  const engine = new SharedEngine()
  const errors: unknown[] = []
  const records = new Records<number>('kind', {
    write: (change) => engine.write(change),
    onError: (error) => errors.push(error),
    isValid: (value) => typeof value === 'number' || Array.isArray(value),
  })
  records.isLive = true
  const seen: unknown[] = []
  records.watch((id, record) => seen.push([id, record?.value]))
  await engine.write({ kind: 'kind', id: 'a', expected: 0, value: '{"number":1}' })
  await engine.write({ kind: 'kind', id: 'b', expected: 0, value: '['.repeat(129) + ']'.repeat(129) })
  for (const change of engine.log) records.apply(change)
  expect([records.all.size, seen, errors.length]).toEqual([0, [], 2])
  await records.change('a', (current) => (current ?? 40) + 2)
  expect(seen).toEqual([['a', 42]])
})
