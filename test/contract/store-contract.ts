/** What every implementation of the Store contract must do; each one's test file runs this suite over it. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { StoreService } from '#kernel'

export interface OpenedStore {
  readonly store: StoreService
  close(): Promise<void>
}

export function storeContract(name: string, open: () => Promise<OpenedStore>): void {
  describe(`the Store contract, by ${name}`, () => {
    let opened: OpenedStore
    beforeEach(async () => {
      opened = await open()
    })
    afterEach(() => opened.close())
    const notes = () => opened.store.collection<unknown>('notes')

    test('a record reads back as it was put', async () => {
      const value = { text: 'tänk 🌍', n: 1.5, list: [null, true, { deep: [] }], empty: '' }
      await notes().put('a', 'id-1', value)
      expect(await notes().get('a', 'id-1')).toEqual(value)
    })

    test.each([null, false, 0, '', [], {}])('the value %j is a record like any other', async (value) => {
      await notes().put('a', 'id', value)
      expect(await notes().get('a', 'id')).toEqual(value)
    })

    test('what was never put is undefined, and its deletion no error', async () => {
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

    test('a changed value does not change the record', async () => {
      const value = { v: 1 }
      await notes().put('a', 'id', value)
      value.v = 2
      expect(await notes().get('a', 'id')).toEqual({ v: 1 })
    })

    test('a list holds all records of the tenant in order of id', async () => {
      for (const id of ['b', 'a10', 'a', 'ä', 'a2', 'B']) await notes().put('t', id, id)
      expect(await notes().list('t')).toEqual(['B', 'a', 'a10', 'a2', 'b', 'ä'])
    })

    test('tenants do not see each other, also when one name begins with the other', async () => {
      for (const tenant of ['team', 'team-a', 'team:', 'team!', 'te']) await notes().put(tenant, 'id', tenant)
      expect(await notes().list('team')).toEqual(['team'])
      await notes().delete('team', 'id')
      expect(await notes().get('team-a', 'id')).toBe('team-a')
      expect(await notes().get('team', 'id')).toBeUndefined()
    })

    test('tenant and id do not run into each other', async () => {
      await notes().put('a', 'b:c', 1)
      await notes().put('a:b', 'c', 2)
      expect(await notes().list('a')).toEqual([1])
      expect(await notes().list('a:b')).toEqual([2])
    })

    test('collections are apart', async () => {
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

    test('many writes at once all arrive', async () => {
      const ids = Array.from({ length: 200 }, (_, index) => `id-${String(index).padStart(3, '0')}`)
      await Promise.all(ids.map((id) => notes().put('a', id, id)))
      expect(await notes().list('a')).toEqual(ids)
    })

    test('a bad collection name is refused when it is asked for', () => {
      expect(() => opened.store.collection('a/b')).toThrow()
    })
  })
}
