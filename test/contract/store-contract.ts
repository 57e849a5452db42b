/** Contract of the Store; each implementation's test file runs it. */
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { type Change, JsonText, type StoreService } from '#kernel'

export interface OpenedStore {
  readonly store: StoreService
  /** Removes expired records. @returns number of removed records */
  sweep(limit: number): Promise<number>
  close(): Promise<void>
}

const put = (id: string, value: unknown, onlyIf?: string | null, collection = 'notes'): Change => ({
  kind: 'put',
  collection,
  tenant: 'a',
  id,
  value,
  onlyIf,
})
const remove = (id: string, onlyIf?: string | null): Change => ({
  kind: 'delete',
  collection: 'notes',
  tenant: 'a',
  id,
  onlyIf,
})
const check = (id: string, onlyIf: string | null): Change => ({
  kind: 'check',
  collection: 'notes',
  tenant: 'a',
  id,
  onlyIf,
})

export function storeContract(name: string, open: () => Promise<OpenedStore>): void {
  describe(`the Store contract, by ${name}`, () => {
    let opened: OpenedStore
    beforeEach(async () => {
      opened = await open()
    })
    afterEach(async () => {
      vi.useRealTimers()
      await opened.close()
    })
    const notes = () => opened.store.collection<unknown>('notes')

    test('a record reads back as it was put', async () => {
      const value = { text: 'tänk 🌍', n: 1.5, list: [null, true, { deep: [] }], empty: '' }
      await notes().put('a', 'id-1', value)
      expect(await notes().get('a', 'id-1')).toEqual(value)
    })

    test.each([null, false, 0, '', [], {}])('the value %j is stored like any other', async (value) => {
      await notes().put('a', 'id', value)
      expect(await notes().get('a', 'id')).toEqual(value)
    })

    test('a record given as JSON text reads back as its value', async () => {
      await opened.store.write([put('1', new JsonText('{"text":"\\u00e4","list":[1,null]}'))])
      expect(await opened.store.collection('notes').get('a', '1')).toEqual({ text: 'ä', list: [1, null] })
    })

    test('an absent record reads as undefined and can be deleted', async () => {
      expect(await notes().get('a', 'nothing')).toBeUndefined()
      await notes().delete('a', 'nothing')
      expect(await notes().list('a')).toEqual([])
    })

    test('a second put replaces the record', async () => {
      await notes().put('a', 'id', { v: 1, old: true })
      await notes().put('a', 'id', { v: 2 })
      expect(await notes().get('a', 'id')).toEqual({ v: 2 })
      expect(await notes().list('a')).toEqual([{ v: 2 }])
    })

    test('a deleted record is gone', async () => {
      await notes().put('a', 'id', 1)
      await notes().delete('a', 'id')
      expect(await notes().get('a', 'id')).toBeUndefined()
      expect(await notes().list('a')).toEqual([])
    })

    test('changing a value after a put does not change the record', async () => {
      const value = { v: 1 }
      await notes().put('a', 'id', value)
      value.v = 2
      expect(await notes().get('a', 'id')).toEqual({ v: 1 })
    })

    test('a list holds all records of the tenant in order of id', async () => {
      for (const id of ['b', 'a10', 'a', 'ä', 'a2', 'B']) await notes().put('t', id, id)
      expect(await notes().list('t')).toEqual(['B', 'a', 'a10', 'a2', 'b', 'ä'])
    })

    test('tenants are isolated, also when one name is a prefix of another', async () => {
      for (const tenant of ['team', 'team-a', 'team:', 'team!', 'te']) await notes().put(tenant, 'id', tenant)
      expect(await notes().list('team')).toEqual(['team'])
      await notes().delete('team', 'id')
      expect(await notes().get('team-a', 'id')).toBe('team-a')
      expect(await notes().get('team', 'id')).toBeUndefined()
    })

    test('tenant and id are separated', async () => {
      await notes().put('a', 'b:c', 1)
      await notes().put('a:b', 'c', 2)
      expect(await notes().list('a')).toEqual([1])
      expect(await notes().list('a:b')).toEqual([2])
    })

    test('collections are separated', async () => {
      const others = opened.store.collection<number>('notes-2')
      await notes().put('a', 'id', 1)
      await others.put('a', 'id', 2)
      expect(await notes().list('a')).toEqual([1])
      expect(await others.list('a')).toEqual([2])
    })

    test('two handles of one collection are the same collection', async () => {
      await opened.store.collection<number>('notes').put('a', 'id', 7)
      expect(await opened.store.collection<number>('notes').get('a', 'id')).toBe(7)
    })

    test('concurrent writes all succeed', async () => {
      const ids = Array.from({ length: 200 }, (_, index) => `id-${String(index).padStart(3, '0')}`)
      await Promise.all(ids.map((id) => notes().put('a', id, id)))
      expect(await notes().list('a')).toEqual(ids)
    })

    test('an invalid collection name is rejected when the collection is opened', () => {
      expect(() => opened.store.collection('a/b')).toThrow()
    })

    test.each([
      ['a\u0000b', 'id'],
      ['a', 'i\u0000d'],
      ['\ud800', 'id'],
      ['a', '\ud800'],
    ])('the tenant %j and the id %j make no key', async (tenant, id) => {
      const error = { code: 'invalid_record_key', status: 400 }
      await expect(notes().put(tenant, id, 1)).rejects.toMatchObject(error)
      await expect(notes().get(tenant, id)).rejects.toMatchObject(error)
    })

    describe('atomic writes', () => {
      const write = (...changes: Change[]) => opened.store.write(changes)

      test('changes of several collections and tenants are written together', async () => {
        await notes().put('a', 'old', 1)
        const version = await write(
          put('x', 'X'),
          put('y', 'Y', undefined, 'others'),
          { ...put('z', 'Z'), tenant: 'b' } as Change,
          remove('old'),
        )
        expect(version).toEqual(expect.any(String))
        expect(await notes().list('a')).toEqual(['X'])
        expect(await opened.store.collection('others').list('a')).toEqual(['Y'])
        expect(await notes().list('b')).toEqual(['Z'])
      })

      test('of two changes of one record the last one applies', async () => {
        await write(put('x', 1), put('x', 2), put('y', 1), remove('y'), remove('z'), put('z', 3))
        expect(await notes().list('a')).toEqual([2, 3])
      })

      test('a write without changes succeeds', async () => {
        expect(await write()).toEqual(expect.any(String))
      })

      test('an invalid last change discards the whole write', async () => {
        await expect(write(put('x', 1), put('a\u0000', 2))).rejects.toMatchObject({
          code: 'invalid_record_key',
        })
        await expect(write(put('x', 1), put('y', undefined))).rejects.toThrow(TypeError)
        expect(await notes().list('a')).toEqual([])
      })

      test('onlyIf null: only the first of two writes succeeds', async () => {
        expect(await write(put('x', 1, null))).toEqual(expect.any(String))
        expect(await write(put('x', 2, null))).toBeNull()
        expect(await notes().get('a', 'x')).toBe(1)
      })

      test('onlyIf with a version: the write fails after a change in between', async () => {
        const first = await write(put('x', 1))
        expect((await notes().read('a', 'x'))?.version).toBe(first)
        const second = await write(put('x', 2, first))
        expect(second).not.toBe(first)
        expect(await write(put('x', 3, first))).toBeNull()
        expect(await write(remove('x', first))).toBeNull()
        expect(await notes().get('a', 'x')).toBe(2)
        expect(await write(remove('x', second))).toEqual(expect.any(String))
        expect(await notes().get('a', 'x')).toBeUndefined()
        expect(await write(put('x', 4, second))).toBeNull()
      })

      test('a plain put creates a new version, even for the same value', async () => {
        await notes().put('a', 'x', 1)
        const before = (await notes().read('a', 'x'))?.version
        await notes().put('a', 'x', 1)
        expect((await notes().read('a', 'x'))?.version).not.toBe(before)
        expect(await write(put('x', 2, before))).toBeNull()
      })

      test('a failed condition discards all changes of its write', async () => {
        const version = await write(put('x', 1))
        expect(await write(put('y', 1), check('x', null))).toBeNull()
        expect(await write(put('y', 1), check('x', 'another'))).toBeNull()
        expect(await write(put('y', 1), put('z', 1, 'another'))).toBeNull()
        expect(await notes().list('a')).toEqual([1])
        expect(await write(put('y', 2), check('x', version), check('z', null))).toEqual(expect.any(String))
        expect(await notes().list('a')).toEqual([1, 2])
      })

      test('conditions apply to the state before the write', async () => {
        expect(await write(put('x', 1), put('x', 2, null))).toEqual(expect.any(String))
        expect(await notes().get('a', 'x')).toBe(2)
      })

      test('of many conditional creations exactly one succeeds', async () => {
        const won = await Promise.all(Array.from({ length: 50 }, (_, index) => write(put('x', index, null))))
        expect(won.filter((version) => version !== null)).toHaveLength(1)
        expect(await notes().get('a', 'x')).toBe(won.findIndex((version) => version !== null))
      })

      test('concurrent versioned increments of a counter lose none', async () => {
        await notes().put('a', 'count', 0)
        const raise = async () => {
          for (;;) {
            const seen = await notes().read('a', 'count')
            if ((await write(put('count', (seen?.value as number) + 1, seen?.version))) !== null) return
          }
        }
        await Promise.all(Array.from({ length: 20 }, raise))
        expect(await notes().get('a', 'count')).toBe(20)
      })

      test('synced and relaxed writes have the same result', async () => {
        const writes = Array.from({ length: 100 }, (_, index) =>
          opened.store.write([put(`id-${String(index).padStart(2, '0')}`, index)], {
            durability: index % 3 === 0 ? 'synced' : 'relaxed',
          }),
        )
        expect(new Set(await Promise.all(writes)).size).toBe(100)
        expect(await notes().list('a')).toEqual(Array.from({ length: 100 }, (_, index) => index))
      })
    })

    describe('several records and tenants', () => {
      test('getMany keeps the order, with undefined for absent records', async () => {
        await notes().put('a', 'x', 1)
        await notes().put('a', 'y', null)
        await notes().put('b', 'z', 3)
        expect(await notes().getMany('a', ['y', 'z', 'x', 'x'])).toEqual([null, undefined, 1, 1])
        expect(await notes().getMany('a', [])).toEqual([])
      })

      test('tenants are listed in order, each once, collection by collection', async () => {
        for (const tenant of ['b', 'a', 'ab', 'a-b', 'ä']) {
          for (const id of ['1', '2']) await notes().put(tenant, id, 0)
        }
        await opened.store.collection('others').put('c', '1', 0)
        expect(await notes().tenants()).toEqual(['a', 'a-b', 'ab', 'b', 'ä'])
        expect(await notes().tenants({ limit: 2 })).toEqual(['a', 'a-b'])
        expect(await notes().tenants({ after: 'a-b', limit: 2 })).toEqual(['ab', 'b'])
        expect(await notes().tenants({ after: 'zz' })).toEqual(['ä'])
      })
    })

    describe('ranges', () => {
      const ids = ['a', 'a1', 'aa', 'b', 'ba', 'c', 'ä', '🌍']
      beforeEach(async () => {
        for (const id of ids) await notes().put('t', id, id)
        await notes().put('s', 'zz', 'other')
        await notes().put('u', 'aa', 'other')
      })
      const read = async (options: Parameters<ReturnType<typeof notes>['range']>[1]) => {
        const { records, next } = await notes().range('t', options)
        return { ids: records.map(({ id }) => id), next }
      }

      test('without options, all records in order', async () => {
        const page = await notes().range('t')
        expect(page.records.map(({ id, value }) => [id, value])).toEqual(ids.map((id) => [id, id]))
        expect(page.next).toBeNull()
        expect(page.records[0]).toMatchObject({ expiresAtMs: null, version: expect.any(String) })
      })

      test('in reverse order', async () => {
        expect(await read({ reverse: true })).toEqual({ ids: ids.toReversed(), next: null })
      })

      test('the range includes its start and excludes its end', async () => {
        expect((await read({ from: 'a1', to: 'b' })).ids).toEqual(['a1', 'aa'])
        expect((await read({ from: 'a1', to: 'b', reverse: true })).ids).toEqual(['aa', 'a1'])
        expect((await read({ from: 'a0', to: 'a1' })).ids).toEqual([])
        expect((await read({ from: 'c', to: 'a' })).ids).toEqual([])
      })

      test.each([false, true])('pages join to all records, reverse: %s', async (reverse) => {
        const expected = reverse ? ids.toReversed() : ids
        for (const limit of [1, 2, 3, 7, 8, 9]) {
          const seen: string[] = []
          let pages = 0
          let after: string | null | undefined
          while (after !== null) {
            const page: { ids: string[]; next: string | null } = await read({ reverse, limit, after })
            seen.push(...page.ids)
            after = page.next
            pages++
          }
          expect(seen).toEqual(expected)
          expect(pages).toBe(Math.ceil(ids.length / limit))
        }
      })

      test('a cursor may be deleted or outside the range', async () => {
        await notes().delete('t', 'b')
        expect((await read({ after: 'b' })).ids).toEqual(['ba', 'c', 'ä', '🌍'])
        expect((await read({ after: 'b', reverse: true })).ids).toEqual(['aa', 'a1', 'a'])
        expect((await read({ from: 'b', after: 'a' })).ids).toEqual(['ba', 'c', 'ä', '🌍'])
        expect((await read({ to: 'b', after: 'z', reverse: true })).ids).toEqual(['aa', 'a1', 'a'])
        expect((await read({ to: 'b', after: 'z' })).ids).toEqual([])
      })

      test('a page is bounded in bytes but has at least one record', async () => {
        for (const id of ['x1', 'x2', 'x3']) await notes().put('t', id, 'x'.repeat(10_000))
        const first = await read({ from: 'x', to: 'y', maxBytes: 100 })
        expect(first).toEqual({ ids: ['x1'], next: 'x1' })
        const second = await read({ from: 'x', to: 'y', maxBytes: 15_000, after: 'x1' })
        expect(second.ids).toEqual(['x2', 'x3'])
      })

      test.each(['x', 'é', '漢', '🌍'])('pages bounded in bytes join to all records, of %s', async (text) => {
        const many = Array.from({ length: 10 }, (_, index) => `x${index}`)
        for (const id of many) await notes().put('t', id, text.repeat(1_000))
        for (const reverse of [false, true]) {
          const seen: string[] = []
          let after: string | null | undefined
          while (after !== null) {
            const page = await read({ from: 'x', to: 'y', maxBytes: 3_500, reverse, after })
            seen.push(...page.ids)
            after = page.next
          }
          expect(seen).toEqual(reverse ? many.toReversed() : many)
        }
      })

      test('pages of any size over any ids join to all records in byte order', async () => {
        let run = 0
        await fc.assert(
          fc.asyncProperty(
            fc.uniqueArray(
              fc.string({ unit: 'grapheme' }).filter((id) => !id.includes('\u0000')),
              {
                maxLength: 12,
              },
            ),
            fc.integer({ min: 1, max: 5 }),
            fc.boolean(),
            async (made, limit, reverse) => {
              const tenant = `run-${run++}`
              await opened.store.write(
                made.map((id) => ({ kind: 'put', collection: 'notes', tenant, id, value: id })),
              )
              const sorted = made.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
              const seen: string[] = []
              let after: string | null | undefined
              while (after !== null) {
                const page = await notes().range(tenant, { limit, reverse, after })
                seen.push(...page.records.map(({ id }) => id))
                after = page.next
              }
              expect(seen).toEqual(reverse ? sorted.toReversed() : sorted)
            },
          ),
          { numRuns: 40 },
        )
      })
    })

    describe('expiry', () => {
      /** Sets the clock of this process, which also decides expiry on a server. */
      const atMs = (ms: number) => vi.useFakeTimers({ now: ms, toFake: ['Date'] })

      test('an expired record is gone for every reader', async () => {
        atMs(1_000_000)
        await notes().put('a', 'x', 1, { expiresAtMs: 1_000_100 })
        await notes().put('a', 'y', 2)
        atMs(1_000_099)
        expect(await notes().list('a')).toEqual([1, 2])
        expect(await notes().read('a', 'x')).toMatchObject({ value: 1, expiresAtMs: 1_000_100 })
        atMs(1_000_100)
        expect(await notes().get('a', 'x')).toBeUndefined()
        expect(await notes().read('a', 'x')).toBeUndefined()
        expect(await notes().getMany('a', ['x', 'y'])).toEqual([undefined, 2])
        expect(await notes().list('a')).toEqual([2])
        expect((await notes().range('a')).records.map(({ id }) => id)).toEqual(['y'])
      })

      test('an expired record counts as absent in conditions', async () => {
        atMs(1_000_000)
        const version = await opened.store.write([{ ...put('x', 1), expiresAtMs: 1_000_100 } as Change])
        expect(await opened.store.write([put('x', 2, null)])).toBeNull()
        atMs(1_000_100)
        expect(await opened.store.write([put('x', 2, version)])).toBeNull()
        expect(await opened.store.write([put('x', 3, null)])).toEqual(expect.any(String))
        expect(await notes().get('a', 'x')).toBe(3)
      })

      test('a later put replaces the expiry of a record', async () => {
        atMs(1_000_000)
        await notes().put('a', 'x', 1, { expiresAtMs: 1_000_100 })
        await notes().put('a', 'x', 2)
        await notes().put('a', 'y', 1, { expiresAtMs: 1_000_100 })
        await notes().put('a', 'y', 2, { expiresAtMs: 1_000_300 })
        atMs(1_000_200)
        while ((await opened.sweep(10)) > 0);
        expect(await notes().list('a')).toEqual([2, 2])
        atMs(1_000_300)
        expect(await notes().list('a')).toEqual([2])
      })

      test('the sweep removes only expired records, slice by slice', async () => {
        atMs(1_000_000)
        for (let index = 0; index < 25; index++) {
          await notes().put('a', `id-${index}`, index, { expiresAtMs: 1_000_010 + index })
        }
        await notes().put('b', 'stays', 1)
        atMs(1_000_019)
        expect(await opened.sweep(4)).toBe(4)
        expect(await opened.sweep(100)).toBe(6)
        expect(await opened.sweep(100)).toBe(0)
        atMs(1_000_000)
        expect(await notes().list('a')).toHaveLength(15)
        expect(await notes().list('b')).toEqual([1])
      })
    })
  })
}
