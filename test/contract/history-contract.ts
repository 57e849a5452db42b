/** Contract of history; test/contract/history.test.ts runs it over every store. */
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Conversation, HistoryItem, Job, LoadedHistory, ResponseRecord, StoreService } from '#kernel'
import { uuidV7 } from '#shared'
import { checkSection } from '../../plugins/cli/configuration/check-section.ts'
import { type HistoryConfig, historyConfig } from '../../plugins/state/history/config.ts'
import { StoredHistory } from '../../plugins/state/history/history-service.ts'

export interface OpenedStore {
  readonly store: StoreService
  close(): Promise<void>
}

export const newId = (prefix: string) => `${prefix}_${uuidV7().replaceAll('-', '')}`

export function message(text: string, role = 'user'): HistoryItem {
  return { id: newId('msg'), type: 'message', role, content: [{ type: 'input_text', text }] }
}

export function makeRecord(
  texts: { in?: string; out?: string } = {},
  more: Partial<ResponseRecord> = {},
): ResponseRecord {
  return {
    id: newId('resp'),
    createdAtSec: Math.floor(Date.now() / 1_000),
    status: 'completed',
    reply: { object: 'response', model: 'm' },
    input: texts.in === undefined ? [] : [message(texts.in)],
    output: texts.out === undefined ? [] : [message(texts.out, 'assistant')],
    previousResponseId: null,
    conversationId: null,
    facts: { worker: 'w' },
    ...more,
  }
}

const silent = {
  trace() {},
  debug() {},
  info() {},
  warn() {},
  error() {},
  fatal() {},
  child: () => silent,
} as never

export function openHistory(store: StoreService, settings: Partial<HistoryConfig> = {}): StoredHistory {
  return new StoredHistory(store, checkSection(historyConfig, settings, []).value as HistoryConfig, silent)
}

const textOf = (item: HistoryItem) => (item.content as { text: string }[])[0].text

export function historyContract(name: string, open: () => Promise<OpenedStore>): void {
  describe(`the History contract, over ${name}`, () => {
    let opened: OpenedStore
    let history: StoredHistory
    const others: StoredHistory[] = []
    beforeEach(async () => {
      opened = await open()
      history = openHistory(opened.store)
    })
    afterEach(async () => {
      vi.useRealTimers()
      for (const one of [history, ...others.splice(0)]) await one.queue.stop()
      await opened.close()
    })
    /** Another gateway over the same store. */
    const another = (settings: Partial<HistoryConfig> = {}) => {
      const made = openHistory(opened.store, settings)
      others.push(made)
      return made
    }
    const resolve = async (tenant: string, ids: readonly string[]) => {
      const found = await history.resolveItems(tenant, ids)
      if (found === null) throw new Error('more than one request may load')
      return found
    }
    const texts = async (id: string, from = history) => {
      const loaded = await from.responses.loadChain('a', id)
      return loaded.problem === undefined ? loaded.items.map(textOf) : loaded.problem
    }
    const turn = async (text: string, previousResponseId: string | null = null, from = history) => {
      const record = makeRecord({ in: `${text}?`, out: `${text}!` }, { previousResponseId })
      expect(await from.responses.finish('a', record)).toBe('stored')
      return record.id
    }

    describe('responses', () => {
      test('a finished response reads back as it was stored', async () => {
        const record = makeRecord({ in: 'tänk \u0000 🌍', out: 'hi' }, { facts: { list: [1, null] } })
        expect(await history.responses.finish('a', record)).toBe('stored')
        expect(await history.responses.get('a', record.id)).toEqual(record)
        expect(await another().responses.get('a', record.id)).toEqual(record)
      })

      test('a running response can be read, updated and finished once', async () => {
        const record = makeRecord({ in: 'q' }, { status: 'queued' })
        await history.responses.create('a', record)
        expect(await history.responses.get('a', record.id)).toEqual(record)
        const output = [message('so far')]
        expect(await history.responses.update('a', record.id, { status: 'in_progress', output })).toBe(true)
        expect(await history.responses.get('a', record.id)).toMatchObject({ status: 'in_progress', output })
        const end = { ...record, status: 'completed' as const, output }
        const ends = [end, { ...end, status: 'failed' as const }, { ...end, status: 'cancelled' as const }]
        const results = await Promise.all(ends.map((one) => history.responses.finish('a', one)))
        expect(results.filter((result) => result === 'stored')).toHaveLength(1)
        expect(results.filter((result) => result === 'gone')).toHaveLength(2)
        const winner = ends[results.indexOf('stored')]
        expect(await history.responses.get('a', record.id)).toEqual(winner)
        expect(await history.responses.update('a', record.id, { output: [] })).toBe(false)
      })

      test('a deleted response is gone for every reader, and cannot be deleted twice', async () => {
        const record = makeRecord({ in: 'q', out: 'a' })
        await history.responses.finish('a', record)
        expect(await history.responses.delete('a', record.id)).toBe(true)
        expect(await history.responses.delete('a', record.id)).toBe(false)
        expect(await history.responses.get('a', record.id)).toBeUndefined()
        expect(await texts(record.id)).toBe('not_found')
        expect((await resolve('a', [record.input[0].id])).size).toBe(0)
      })

      test('a late end does not restore a deleted response', async () => {
        const record = makeRecord({ in: 'q' }, { status: 'in_progress' })
        await history.responses.create('a', record)
        expect(await history.responses.delete('a', record.id)).toBe(true)
        expect(await history.responses.update('a', record.id, { output: [] })).toBe(false)
        expect(await history.responses.finish('a', { ...record, status: 'completed' })).toBe('gone')
        expect(await history.responses.get('a', record.id)).toBeUndefined()
      })

      test('only completed and incomplete responses can be continued', async () => {
        for (const [status, problem] of [
          ['queued', 'in_progress'],
          ['in_progress', 'in_progress'],
        ] as const) {
          const record = makeRecord({ in: 'q' }, { status })
          await history.responses.create('a', record)
          expect(await texts(record.id)).toBe(problem)
        }
        for (const status of ['failed', 'cancelled'] as const) {
          const record = makeRecord({ in: 'q', out: 'partial' }, { status })
          await history.responses.finish('a', record)
          expect(await texts(record.id)).toBe('unusable')
          expect(await history.responses.get('a', record.id)).toEqual(record)
        }
        const cut = makeRecord({ in: 'q', out: 'cut' }, { status: 'incomplete' })
        await history.responses.finish('a', cut)
        expect(await texts(cut.id)).toEqual(['q', 'cut'])
      })

      test.each(['', 'resp_nothing', 'a b', 'x\u0000', '\ud800', '../x', 'resp_1.2', 'x'.repeat(3_000)])(
        'the id %j is an unknown one',
        async (id) => {
          expect(await history.responses.get('a', id)).toBeUndefined()
          expect(await history.responses.delete('a', id)).toBe(false)
          expect(await history.responses.update('a', id, {})).toBe(false)
          expect(await texts(id)).toBe('not_found')
          expect(await history.conversations.get('a', id)).toBeUndefined()
          expect(await history.conversations.delete('a', id)).toBe(false)
          expect(await history.conversations.page('a', id, { order: 'asc', limit: 1 })).toMatchObject({
            problem: 'conversation_not_found',
          })
          expect((await resolve('a', [id])).size).toBe(0)
          expect(await history.events.read('a', id, -1)).toEqual([])
        },
      )
    })

    describe('chains', () => {
      test('a chain of 150 responses loads completely on every thread', async () => {
        let id: string | null = null
        for (let index = 0; index < 150; index++)
          id = await turn(String(index), id, index % 7 === 0 ? another() : history)
        const expected = Array.from({ length: 150 }, (_, index) => [`${index}?`, `${index}!`]).flat()
        expect(await texts(id ?? '')).toEqual(expected)
        expect(await texts(id ?? '', another({ cacheBytes: 0 }))).toEqual(expected)
      })

      test('branches share their ancestors and nothing else', async () => {
        const root = await turn('root')
        const [left, right] = await Promise.all([turn('left', root), turn('right', root, another())])
        const deep = await turn('deep', await turn('next', right))
        const third = await turn('third', root)
        expect(await texts(left)).toEqual(['root?', 'root!', 'left?', 'left!'])
        expect(await texts(third)).toEqual(['root?', 'root!', 'third?', 'third!'])
        const expected = ['root', 'right', 'next', 'deep'].flatMap((text) => [`${text}?`, `${text}!`])
        expect(await texts(deep)).toEqual(expected)
        expect(await texts(deep, another())).toEqual(expected)
      })

      test('a chain omits the turns of a deleted ancestor and keeps the others', async () => {
        const first = await turn('1')
        const second = await turn('2', first)
        const third = await turn('3', second)
        expect(await texts(third)).toHaveLength(6)
        const elsewhere = another()
        expect(await elsewhere.responses.delete('a', second)).toBe(true)
        expect(await texts(third)).toEqual(['1?', '1!', '3?', '3!'])
        expect(await texts(await turn('4', third))).toEqual(['1?', '1!', '3?', '3!', '4?', '4!'])
        expect(await texts(second)).toBe('not_found')
      })

      test('a chain that exceeds any limit is reported', async () => {
        let id: string | null = null
        for (let index = 0; index < 4; index++) id = await turn(String(index), id)
        expect(await texts(id ?? '', another({ maxChainResponses: 4 }))).toHaveLength(8)
        expect(await texts(id ?? '', another({ maxChainResponses: 3 }))).toBe('too_long')
        expect(await texts(id ?? '', another({ maxHistoryItems: 7 }))).toBe('too_long')
        const large = await turn('x'.repeat(3_000))
        expect(await texts(large, another({ maxHistoryBytes: 2_000 }))).toBe('too_long')
      })

      test('any tree of turns and deletions reads like the list of its ancestors', async () => {
        await fc.assert(
          fc.asyncProperty(
            fc.array(fc.record({ parent: fc.nat(), isDeletion: fc.boolean(), gateway: fc.nat(1) }), {
              minLength: 1,
              maxLength: 14,
            }),
            async (steps) => {
              const gateways = [history, another()]
              const made: { id: string; text: string; parent: number | null; isGone: boolean }[] = []
              for (const [index, { parent, isDeletion, gateway }] of steps.entries()) {
                const alive = made.flatMap(({ isGone }, at) => (isGone ? [] : [at]))
                const at = alive.length === 0 ? null : alive[parent % alive.length]
                if (isDeletion && at !== null && index % 3 === 0) {
                  await gateways[gateway].responses.delete('a', made[at].id)
                  made[at].isGone = true
                  continue
                }
                const text = `t${index}`
                const id = await turn(text, at === null ? null : made[at].id, gateways[gateway])
                made.push({ id, text, parent: at, isGone: false })
              }
              for (const { id, isGone } of made) {
                const expected: string[] = []
                let at: number | null = made.findIndex((one) => one.id === id)
                while (at !== null) {
                  const one: (typeof made)[number] = made[at]
                  if (!one.isGone) expected.unshift(`${one.text}?`, `${one.text}!`)
                  at = one.parent
                }
                for (const gateway of gateways) {
                  expect(await texts(id, gateway)).toEqual(isGone ? 'not_found' : expected)
                }
              }
            },
          ),
          { numRuns: 15 },
        )
      }, 60_000)
    })

    describe('items', () => {
      test('items are found by id in input and output of any response', async () => {
        const record = makeRecord({ in: 'q', out: 'a' })
        await history.responses.finish('a', record)
        const ids = [record.output[0].id, 'msg_unknown', record.input[0].id]
        const found = await resolve('a', ids)
        expect(found.get(record.output[0].id)).toEqual(record.output[0])
        expect(found.get(record.input[0].id)).toEqual(record.input[0])
        expect(found.size).toBe(2)
      })

      test('loading more items or bytes than a request may load is rejected', async () => {
        const records = Array.from({ length: 40 }, (_, index) =>
          makeRecord({ in: `small ${index}`, out: 'x'.repeat(1_000) }),
        )
        for (const record of records) await history.responses.finish('a', record)
        const small = records.map(({ input }) => input[0].id)
        const large = records.map(({ output }) => output[0].id)
        const tight = another({ maxHistoryBytes: 20_000 })
        expect((await tight.resolveItems('a', small))?.size).toBe(40)
        expect(await tight.resolveItems('a', large)).toBeNull()
        expect((await history.resolveItems('a', large))?.size).toBe(40)
        expect(await another({ maxHistoryItems: 39 }).resolveItems('a', small)).toBeNull()
      })

      test('an item id sent by a client never replaces a stored item', async () => {
        const first = makeRecord({ in: 'mine', out: 'a' })
        await history.responses.finish('a', first)
        const stolen = { ...message('other'), id: first.output[0].id }
        const second = makeRecord({ out: 'b' }, { input: [stolen] })
        await history.responses.finish('a', second)
        expect((await resolve('a', [stolen.id])).get(stolen.id)).toEqual(first.output[0])
        expect((await history.responses.get('a', second.id))?.input).toEqual([stolen])
      })
    })

    describe('conversations', () => {
      const begin = async (metadata: Record<string, string> = {}, tenant = 'a') => {
        const conversation: Conversation = { id: newId('conv'), createdAtSec: 7, metadata }
        expect(await history.conversations.create(tenant, conversation)).toEqual(conversation)
        return conversation.id
      }
      const list = async (id: string, order: 'asc' | 'desc' = 'asc', from = history) => {
        const page = await from.conversations.page('a', id, { order, limit: 100 })
        return page.problem === undefined ? page.items.map(({ item }) => textOf(item)) : page.problem
      }
      const add = (id: string, ...all: string[]) =>
        history.conversations.add(
          'a',
          id,
          all.map((text) => ({ item: message(text) })),
        )
      const converse = async (id: string, text: string, from = history) => {
        const lock = await from.conversations.lock('a', id)
        if (lock === null) return 'locked'
        const record = makeRecord({ in: `${text}?`, out: `${text}!` }, { conversationId: id })
        const result = await from.responses.finish('a', record, { lock })
        await lock.release()
        return result
      }

      test('concurrent metadata changes of distinct keys are all kept', async () => {
        const id = await begin({ a: '0' })
        const gateways = [history, another()]
        await Promise.all(
          Array.from({ length: 12 }, (_, index) =>
            gateways[index % 2].conversations.changeMetadata('a', id, (metadata) => ({
              ...metadata,
              [`k${index}`]: 'v',
            })),
          ),
        )
        expect(Object.keys((await history.conversations.get('a', id))?.metadata ?? {})).toHaveLength(13)
      })

      test('a metadata change that throws changes nothing', async () => {
        const id = await begin({ a: '0' })
        const change = history.conversations.changeMetadata('a', id, () => {
          throw new Error('no')
        })
        await expect(change).rejects.toThrow('no')
        expect((await history.conversations.get('a', id))?.metadata).toEqual({ a: '0' })
      })

      test('items keep insertion order, and an addition is all or nothing', async () => {
        const id = await begin()
        const added = await add(id, '1', '2')
        expect(added).toEqual([
          { item: expect.objectContaining({ type: 'message' }), createdAtSec: expect.any(Number) },
          expect.anything(),
        ])
        const bad = await history.conversations.add('a', id, [
          { item: message('3') },
          { reference: 'msg_unknown' },
        ])
        expect(bad).toEqual({ problem: 'item_not_found', id: 'msg_unknown' })
        expect(await list(id)).toEqual(['1', '2'])
        await Promise.all([add(id, '3', '4'), add(id, '5', '6'), add(id, '7', '8')])
        const all = (await list(id)) as string[]
        expect(all.toSorted()).toEqual(['1', '2', '3', '4', '5', '6', '7', '8'])
        for (const text of ['3', '5', '7']) expect(all[all.indexOf(text) + 1]).toBe(String(Number(text) + 1))
        expect(await list(id, 'desc')).toEqual(all.toReversed())
      })

      test('items come in pages of 100, 100 and 50', async () => {
        const id = await begin()
        for (let from = 0; from < 250; from += 50) {
          await add(id, ...Array.from({ length: 50 }, (_, index) => String(from + index)))
        }
        for (const order of ['asc', 'desc'] as const) {
          const sizes: [number, boolean][] = []
          const seen: string[] = []
          let after: string | undefined
          for (let hasMore = true; hasMore; ) {
            const page = await history.conversations.page('a', id, { order, limit: 100, after })
            if (page.problem !== undefined) throw new Error(page.problem)
            sizes.push([page.items.length, page.hasMore])
            seen.push(...page.items.map(({ item }) => textOf(item)))
            after = page.items.at(-1)?.item.id
            hasMore = page.hasMore
          }
          expect(sizes).toEqual([
            [100, true],
            [100, true],
            [50, false],
          ])
          const all = Array.from({ length: 250 }, (_, index) => String(index))
          expect(seen).toEqual(order === 'asc' ? all : all.toReversed())
        }
        const exact = await history.conversations.page('a', id, { order: 'asc', limit: 250 })
        expect(exact).toMatchObject({ hasMore: false })
      })

      test('a removed item is still a valid cursor; an unknown id is not', async () => {
        const id = await begin()
        const added = (await add(id, '1', '2', '3')) as readonly { item: HistoryItem }[]
        await history.conversations.removeItem('a', id, added[1].item.id)
        const page = await history.conversations.page('a', id, {
          order: 'asc',
          limit: 5,
          after: added[1].item.id,
        })
        expect(page).toMatchObject({ items: [{ item: added[2].item }], hasMore: false })
        for (const after of ['msg_unknown', 'x\u0000', (await begin()).replace('conv', 'msg')]) {
          expect(await history.conversations.page('a', id, { order: 'asc', limit: 5, after })).toEqual({
            problem: 'item_not_found',
            id: after,
          })
        }
      })

      test('a shared item survives in one conversation when another removes it', async () => {
        const [a, b] = [await begin(), await begin()]
        const [{ item }] = (await add(a, 'shared')) as readonly { item: HistoryItem }[]
        expect(await history.conversations.add('a', b, [{ reference: item.id }])).toMatchObject([{ item }])
        expect(await history.conversations.add('a', b, [{ reference: item.id }])).toEqual({
          problem: 'item_exists',
          id: item.id,
        })
        expect(await history.conversations.removeItem('a', a, item.id)).toMatchObject({
          id: a,
          createdAtSec: 7,
        })
        expect(await history.conversations.item('a', a, item.id)).toEqual({
          problem: 'item_not_found',
          id: item.id,
        })
        expect(await history.conversations.removeItem('a', a, item.id)).toMatchObject({
          problem: 'item_not_found',
        })
        expect(await history.conversations.item('a', b, item.id)).toMatchObject({ item })
        expect((await resolve('a', [item.id])).get(item.id)).toEqual(item)
        expect(await history.conversations.add('a', a, [{ reference: item.id }])).toMatchObject([{ item }])
        expect(await list(a)).toEqual(['shared'])
      })

      test('turns append input and output, in order', async () => {
        const id = await begin()
        expect(await converse(id, 'one')).toBe('stored')
        expect(await converse(id, 'two', another())).toBe('stored')
        expect(await list(id)).toEqual(['one?', 'one!', 'two?', 'two!'])
        expect(((await history.conversations.load('a', id)) as LoadedHistory).items.map(textOf)).toHaveLength(
          4,
        )
      })

      test('only one of several concurrent turns holds the lock, and their items are not interleaved', async () => {
        const id = await begin()
        const gateways = [history, another(), another()]
        const results = await Promise.all(
          Array.from({ length: 24 }, async (_, index) => {
            for (;;) {
              const result = await converse(id, `t${index}`, gateways[index % 3])
              if (result !== 'locked') return result
              await new Promise((resolve) => setTimeout(resolve, 2))
            }
          }),
        )
        expect(new Set(results)).toEqual(new Set(['stored']))
        const all = (await list(id)) as string[]
        expect(all).toHaveLength(48)
        for (let at = 0; at < 48; at += 2) expect(all[at + 1]).toBe(all[at].replace('?', '!'))
      }, 30_000)

      test('a failed turn adds no items and releases the lock', async () => {
        const id = await begin()
        const lock = await history.conversations.lock('a', id)
        const record = makeRecord({ in: 'q', out: 'partial' }, { conversationId: id, status: 'failed' })
        expect(await history.responses.finish('a', record, { lock: lock ?? undefined })).toBe('stored')
        expect(await list(id)).toEqual([])
        expect(await converse(id, 'next')).toBe('stored')
      })

      test('a lock lasts while its holder renews it, otherwise until its lease expires', async () => {
        const id = await begin()
        vi.useFakeTimers({ now: 1_000_000_000, toFake: ['Date', 'setInterval', 'clearInterval'] })
        const dying = another({ lockLeaseMs: 3_000 })
        const lock = await dying.conversations.lock('a', id)
        vi.setSystemTime(1_000_002_900)
        expect(await history.conversations.lock('a', id)).toBeNull()
        vi.setSystemTime(1_000_003_000)
        const next = await history.conversations.lock('a', id)
        expect(next).not.toBeNull()
        const late = makeRecord({ in: 'late', out: 'late' }, { conversationId: id })
        expect(await dying.responses.finish('a', late, { lock: lock ?? undefined })).toBe('lock_lost')
        expect(await history.responses.get('a', late.id)).toBeUndefined()
        await lock?.release()
        expect(await another().conversations.lock('a', id)).toBeNull()
        await next?.release()
      })

      test('if a conversation is deleted during a turn, the response is kept without it', async () => {
        const id = await begin()
        const lock = await history.conversations.lock('a', id)
        expect(await history.conversations.delete('a', id)).toBe(true)
        const record = makeRecord({ in: 'q', out: 'a' }, { conversationId: id })
        expect(await history.responses.finish('a', record, { lock: lock ?? undefined })).toBe(
          'conversation_gone',
        )
        expect(await history.responses.get('a', record.id)).toEqual(record)
        expect(await history.conversations.get('a', id)).toBeUndefined()
        expect(await history.conversations.delete('a', id)).toBe(false)
      })

      test('items added during a turn precede the items of the turn', async () => {
        const id = await begin()
        const lock = await history.conversations.lock('a', id)
        await add(id, 'meanwhile')
        const record = makeRecord({ in: 'q', out: 'a' }, { conversationId: id })
        expect(await history.responses.finish('a', record, { lock: lock ?? undefined })).toBe('stored')
        expect(await list(id)).toEqual(['meanwhile', 'q', 'a'])
      })

      test('a chain that continues a conversation turn includes the items before that turn', async () => {
        const id = await begin()
        await add(id, 'before')
        const lock = await history.conversations.lock('a', id)
        const record = makeRecord({ in: 'q', out: 'a' }, { conversationId: id })
        await history.responses.finish('a', record, { lock: lock ?? undefined })
        await add(id, 'after')
        const next = await turn('next', record.id)
        expect(await texts(next)).toEqual(['before', 'q', 'a', 'next?', 'next!'])
        expect(await texts(next, another())).toEqual(['before', 'q', 'a', 'next?', 'next!'])
      })

      test('conversation items before the turn count towards the limits of a chain that continues it', async () => {
        const id = await begin()
        for (let index = 0; index < 4; index++) await add(id, 'x'.repeat(1_000))
        const lock = await history.conversations.lock('a', id)
        const record = makeRecord({ in: 'q', out: 'a' }, { conversationId: id })
        await history.responses.finish('a', record, { lock: lock ?? undefined })
        const next = await turn('next', record.id)
        for (const last of [record.id, next]) {
          expect(await texts(last, another({ maxHistoryBytes: 3_500 }))).toBe('too_long')
          const loaded = await another({ maxHistoryBytes: 10_000 }).responses.loadChain('a', last)
          expect(loaded).toMatchObject({ bytes: expect.any(Number) })
          expect((loaded as LoadedHistory).bytes).toBeGreaterThan(4_000)
        }
      })

      test('a conversation of 300 items loads completely, without removed items', async () => {
        const id = await begin()
        for (let from = 0; from < 300; from += 100) {
          await add(id, ...Array.from({ length: 100 }, (_, index) => String(from + index)))
        }
        const load = async (from = history) =>
          ((await from.conversations.load('a', id)) as LoadedHistory).items
        expect((await load()).map(textOf)).toEqual(Array.from({ length: 300 }, (_, index) => String(index)))
        const [{ id: first }] = await load()
        const elsewhere = another()
        await elsewhere.conversations.removeItem('a', id, first)
        await add(id, 'new')
        expect((await load()).map(textOf)).toEqual([
          ...Array.from({ length: 299 }, (_, at) => String(at + 1)),
          'new',
        ])
        expect(await another({ maxHistoryItems: 299 }).conversations.load('a', id)).toEqual({
          problem: 'too_long',
        })
        expect(await history.conversations.load('a', 'conv_unknown')).toEqual({ problem: 'not_found' })
      })

      test.each([0, 1])(
        'an item removed a day ago is not loaded, with %s items added later',
        async (more) => {
          vi.useFakeTimers({ now: 2_000_000_000_000, toFake: ['Date', 'performance'] })
          const id = await begin()
          await add(id, 'kept', 'removed')
          const load = async () =>
            ((await history.conversations.load('a', id)) as LoadedHistory).items.map(textOf)
          expect(await load()).toEqual(['kept', 'removed'])
          const { items } = (await history.conversations.load('a', id)) as LoadedHistory
          await another().conversations.removeItem('a', id, items[1].id)
          // The removal marker has expired in the store by now.
          vi.advanceTimersByTime(25 * 3_600_000)
          for (let index = 0; index < more; index++) await add(id, 'new')
          expect(await load()).toEqual(['kept', ...Array.from({ length: more }, () => 'new')])
        },
      )

      test('deleting a response keeps its items in the conversation, and removing items keeps them in the response', async () => {
        const id = await begin()
        const lock = await history.conversations.lock('a', id)
        const record = makeRecord({ in: 'q', out: 'a' }, { conversationId: id })
        await history.responses.finish('a', record, { lock: lock ?? undefined })
        await history.conversations.removeItem('a', id, record.input[0].id)
        expect((await history.responses.get('a', record.id))?.input).toEqual(record.input)
        await history.responses.delete('a', record.id)
        expect(await list(id)).toEqual(['a'])
        expect([...(await resolve('a', [record.input[0].id, record.output[0].id])).keys()]).toEqual([
          record.output[0].id,
        ])
      })
    })

    describe('tenants', () => {
      test("another tenant's ids are treated as unknown", async () => {
        const { responses, conversations } = history
        const record = makeRecord({ in: 'secret', out: 'secret' })
        await responses.finish('a', record)
        const running = makeRecord({ in: 'secret' }, { status: 'in_progress' })
        await responses.create('a', running)
        const conversation: Conversation = { id: newId('conv'), createdAtSec: 1, metadata: { s: 'secret' } }
        const item = message('secret')
        await conversations.create('a', conversation, [{ item }])
        await history.events.append('a', running.id, 0, ['secret'])
        for (const id of [record.id, running.id]) {
          expect(await responses.get('b', id)).toBeUndefined()
          expect(await responses.update('b', id, { output: [] })).toBe(false)
          expect(await responses.delete('b', id)).toBe(false)
          expect(await responses.loadChain('b', id)).toEqual({ problem: 'not_found' })
          expect(await history.events.read('b', id, -1)).toEqual([])
        }
        const { id } = conversation
        const missing = { problem: 'conversation_not_found' }
        expect(await conversations.get('b', id)).toBeUndefined()
        expect(await conversations.changeMetadata('b', id, (all) => all)).toBeUndefined()
        expect(await conversations.delete('b', id)).toBe(false)
        expect(await conversations.add('b', id, [{ item: message('x') }])).toEqual(missing)
        expect(await conversations.item('b', id, item.id)).toEqual(missing)
        expect(await conversations.removeItem('b', id, item.id)).toEqual(missing)
        expect(await conversations.page('b', id, { order: 'asc', limit: 5 })).toEqual(missing)
        expect(await conversations.load('b', id)).toEqual({ problem: 'not_found' })
        expect((await resolve('b', [item.id, record.input[0].id])).size).toBe(0)
        const own = { id: newId('conv'), createdAtSec: 1, metadata: {} }
        expect(await conversations.create('b', own, [{ reference: item.id }])).toEqual({
          problem: 'item_not_found',
          id: item.id,
        })
        expect(await history.queue.waiting('b', 10)).toBe(0)
        expect(await responses.get('a', record.id)).toEqual(record)
        expect(await conversations.get('a', id)).toEqual(conversation)
      })

      test('two tenants may store the same ids', async () => {
        const record = makeRecord({ in: 'of a', out: 'x' })
        await history.responses.finish('a', record)
        const same = { ...record, input: [{ ...record.input[0], content: 'of b' }] }
        expect(await history.responses.finish('b', same)).toBe('stored')
        expect(await history.responses.get('a', record.id)).toEqual(record)
        expect(await history.responses.get('b', record.id)).toEqual(same)
      })
    })

    describe('background work', () => {
      const queue = async (tenant: string, count: number) => {
        const records = Array.from({ length: count }, () => makeRecord({ in: 'q' }, { status: 'queued' }))
        for (const record of records) await history.responses.create(tenant, record, true)
        return records
      }
      const always = () => 100

      test('jobs are claimed once, oldest first per tenant, within the tenant limit', async () => {
        const records = await queue('a', 5)
        await queue('b', 2)
        expect(await history.queue.waiting('a', 100)).toBe(5)
        expect(await history.queue.waiting('a', 3)).toBe(3)
        const first = await history.queue.claim(10, (tenant) => (tenant === 'a' ? 2 : 0))
        expect(first.map(({ responseId }) => responseId)).toEqual(records.slice(0, 2).map(({ id }) => id))
        const gateways = [history, another(), another()]
        const rest = (await Promise.all(gateways.map((one) => one.queue.claim(10, always)))).flat()
        expect(new Set([...first, ...rest].map(({ responseId }) => responseId)).size).toBe(rest.length + 2)
        expect(rest).toHaveLength(5)
        expect(await history.queue.waiting('a', 100)).toBe(0)
      })

      test('if the store fails during a claim, claimed jobs are returned now or at the next claim', async () => {
        const records = await queue('a', 3)
        const { store } = opened
        const write = store.write.bind(store)
        let writes = 0
        const failure = new Error('away for a while')
        const spy = vi.spyOn(store, 'write').mockImplementation(async (...call) => {
          const isClaim = call[0].some((change) => change.collection === 'jobs-claimed')
          const at = isClaim ? writes++ : 0
          if (at === 1) throw failure
          const version = await write(...call)
          // The write succeeds, but its result is lost.
          if (at === 2) throw failure
          return version
        })
        const ids = (jobs: readonly Job[]) => jobs.map(({ responseId }) => responseId)
        const first = await history.queue.claim(10, always)
        expect(ids(first)).toEqual([records[0].id])
        spy.mockRestore()
        const second = await history.queue.claim(10, always)
        expect(ids(second).toSorted()).toEqual(
          records
            .slice(1)
            .map(({ id }) => id)
            .toSorted(),
        )
      })

      test('a delayed job is skipped, and is the first again after the delay', async () => {
        vi.useFakeTimers({ now: 2_000_000_000_000, toFake: ['Date', 'setInterval', 'clearInterval'] })
        const records = await queue('a', 130)
        const ids = (jobs: readonly Job[]) => jobs.map(({ responseId }) => responseId)
        for (const job of await history.queue.claim(125, () => 125)) await history.queue.release(job, 1_000)
        const [next] = await another().queue.claim(1, always)
        expect(next.responseId).toBe(records[125].id)
        vi.setSystemTime(2_000_000_001_000)
        expect(ids(await another().queue.claim(1, always))).toEqual([records[0].id])
      })

      test('a job that was already released is not released again', async () => {
        await queue('a', 1)
        const [job] = await history.queue.claim(1, always)
        await history.queue.release(job)
        const [theirs] = await another().queue.claim(1, always)
        await history.queue.release(job)
        expect(theirs).toBeDefined()
        expect(await history.queue.waiting('a', 10)).toBe(0)
      })

      test('if the store fails during the takeover of lost jobs, they are returned now or at the next takeover', async () => {
        vi.useFakeTimers({ now: 2_000_000_000_000, toFake: ['Date', 'setInterval', 'clearInterval'] })
        const records = await queue('a', 2)
        await another({ ownerLeaseMs: 5_000 }).queue.claim(10, always)
        vi.setSystemTime(2_000_000_005_000)
        await history.queue.claimLost(0)
        const write = opened.store.write.bind(opened.store)
        const spy = vi.spyOn(opened.store, 'write').mockImplementationOnce(async (...call) => {
          await write(...call)
          throw new Error('away for a while')
        })
        const first = await history.queue.claimLost(10)
        spy.mockRestore()
        const second = await history.queue.claimLost(10)
        const ids = [...first, ...second].map(({ responseId }) => responseId)
        expect(ids.toSorted()).toEqual(records.map(({ id }) => id).toSorted())
      })

      test('finishing a response removes its job', async () => {
        const [record] = await queue('a', 1)
        const [job] = await history.queue.claim(1, always)
        expect(job).toMatchObject({ tenant: 'a', responseId: record.id, attempts: 0 })
        await history.responses.finish('a', { ...record, status: 'completed' }, { job })
        vi.useFakeTimers({ now: Date.now() + 1_000_000, toFake: ['Date'] })
        expect(await another().queue.claimLost(10)).toEqual([])
      })

      test('a deleted response is not claimed', async () => {
        const [record] = await queue('a', 1)
        await history.responses.delete('a', record.id)
        expect(await history.queue.claim(10, always)).toEqual([])
      })

      test('a released job keeps its position and counts its attempts', async () => {
        const records = await queue('a', 2)
        const [job] = await history.queue.claim(1, always)
        await history.queue.release(job)
        const [again] = await another().queue.claim(1, always)
        expect(again).toMatchObject({ responseId: records[0].id, attempts: 1 })
        await history.queue.discard(again)
      })

      test('jobs of a dead thread are taken over by exactly one other', async () => {
        vi.useFakeTimers({ now: 2_000_000_000_000, toFake: ['Date', 'setInterval', 'clearInterval'] })
        await queue('a', 3)
        const dying = another({ ownerLeaseMs: 5_000 })
        const jobs = await dying.queue.claim(10, always)
        expect(jobs).toHaveLength(3)
        expect(await history.queue.claimLost(10)).toEqual([])
        vi.setSystemTime(2_000_000_005_000)
        const taken = (await Promise.all([history, another()].map((one) => one.queue.claimLost(10)))).flat()
        expect(taken.map(({ responseId }) => responseId).toSorted()).toEqual(
          jobs.map(({ responseId }) => responseId).toSorted(),
        )
        expect(taken.every(({ attempts }) => attempts === 1)).toBe(true)
        expect(await history.queue.claimLost(10)).toEqual([])
      })
    })

    describe('events', () => {
      test('frames are read from any number on, in order, across records', async () => {
        const { events } = history
        await events.append('a', 'resp_1', 0, ['e0', 'e1', 'e2'])
        await events.append('a', 'resp_1', 3, ['e3'])
        await events.append('a', 'resp_1', 4, ['e4', 'e5'])
        await events.append('a', 'resp_10', 0, ['other'])
        for (let after = -1; after < 7; after++) {
          const read = await another().events.read('a', 'resp_1', after)
          expect(read.map(({ frame }) => frame)).toEqual(
            ['e0', 'e1', 'e2', 'e3', 'e4', 'e5'].slice(after + 1),
          )
          expect(read.map(({ number }) => `e${number}`)).toEqual(read.map(({ frame }) => frame))
        }
      })

      test('clearing removes the events of one response only', async () => {
        const { events } = history
        for (let number = 0; number < 250; number++) await events.append('a', 'resp_1', number, ['x'])
        for (const [tenant, id] of [
          ['a', 'resp_10'],
          ['b', 'resp_1'],
        ])
          await events.append(tenant, id, 0, ['other'])
        await events.clear('a', 'resp_1')
        expect(await events.read('a', 'resp_1', -1)).toEqual([])
        expect(await events.read('a', 'resp_10', -1)).toHaveLength(1)
        expect(await events.read('b', 'resp_1', -1)).toHaveLength(1)
      })

      test('events expire', async () => {
        vi.useFakeTimers({ now: 1_000_000, toFake: ['Date'] })
        await another({ eventsKeptMs: 5_000 }).events.append('a', 'resp_1', 0, ['e0'])
        vi.setSystemTime(1_005_000)
        expect(await history.events.read('a', 'resp_1', -1)).toEqual([])
      })
    })

    describe('retention', () => {
      const dayMs = 86_400_000
      const everything = async () => {
        const collections = [
          'responses',
          'response-turns',
          'response-chains',
          'response-branches',
          'response-ages',
          'items',
        ]
        const counts = await Promise.all(
          collections.map(async (one) => (await opened.store.collection(one).list('a')).length),
        )
        return counts.reduce((sum, count) => sum + count, 0)
      }
      const sweep = async (from: StoredHistory, nowMs: number) => {
        while ((await from.retention.slice(3, nowMs)) > 0);
      }

      test('expired responses are removed with their chains and branches', async () => {
        const root = await turn('root')
        await Promise.all([turn('left', root), turn('right', root)])
        await turn('deep', await turn('more', root))
        const nowMs = Date.now()
        await sweep(history, nowMs + 29 * dayMs)
        expect(await texts(root)).toHaveLength(2)
        await sweep(history, nowMs + 31 * dayMs)
        expect(await texts(root)).toBe('not_found')
        expect(await everything()).toBe(0)
      })

      test('an expired turn that a newer turn continues remains only in its history', async () => {
        const old = makeRecord(
          { in: 'old?', out: 'old!' },
          { createdAtSec: Math.floor(Date.now() / 1_000) - 40 * 86_400 },
        )
        await history.responses.finish('a', old)
        const young = await turn('young', old.id)
        await sweep(history, Date.now())
        expect(await history.responses.get('a', old.id)).toBeUndefined()
        expect(await texts(young, another())).toEqual(['old?', 'old!', 'young?', 'young!'])
        await sweep(history, Date.now() + 31 * dayMs)
        expect(await everything()).toBe(0)
      })

      test('beyond the maximum number, the oldest responses of each tenant are removed', async () => {
        const few = another({ maxResponsesPerTenant: 3, maxAgeDays: null })
        const ids: string[] = []
        for (let index = 0; index < 8; index++) ids.push(await turn(String(index)))
        await history.responses.finish('b', makeRecord({ in: 'of b' }))
        await sweep(few, Date.now())
        const left = await Promise.all(ids.map((id) => history.responses.get('a', id)))
        expect(left.map((record) => record !== undefined)).toEqual([
          ...Array(5).fill(false),
          true,
          true,
          true,
        ])
        expect(await opened.store.collection('responses').list('b')).toHaveLength(1)
      })

      test('items of a deleted conversation are removed unless another conversation uses them', async () => {
        const id = newId('conv')
        const items = Array.from({ length: 10 }, (_, index) => message(String(index)))
        await history.conversations.create(
          'a',
          { id, createdAtSec: 1, metadata: {} },
          items.map((item) => ({ item })),
        )
        const other = newId('conv')
        await history.conversations.create('a', { id: other, createdAtSec: 1, metadata: {} }, [
          { reference: items[0].id },
        ])
        await history.conversations.delete('a', id)
        await sweep(history, Date.now())
        expect(await opened.store.collection('conversation-items').list('a')).toHaveLength(1)
        expect(await opened.store.collection('conversation-positions').list('a')).toHaveLength(1)
        const found = await resolve(
          'a',
          items.map((item) => item.id),
        )
        expect([...found.keys()]).toEqual([items[0].id])
      })
      test('a conversation without changes expires with its items', async () => {
        const create = async () => {
          const id = newId('conv')
          const item = message('kept')
          await history.conversations.create('a', { id, createdAtSec: 1, metadata: {} }, [{ item }])
          return id
        }
        const [unused, used] = [await create(), await create()]
        const nowMs = Date.now()
        vi.useFakeTimers({ toFake: ['Date'], now: nowMs + 60 * dayMs })
        await history.conversations.changeMetadata('a', used, () => ({ changed: 'yes' }))
        await sweep(history, nowMs + 91 * dayMs)
        expect(await history.conversations.get('a', unused)).toBeUndefined()
        expect(await history.conversations.get('a', used)).toMatchObject({ metadata: { changed: 'yes' } })
        expect(await opened.store.collection('conversation-items').list('a')).toHaveLength(1)
        await sweep(another({ maxConversationAgeDays: null }), nowMs + 1_000 * dayMs)
        expect(await history.conversations.get('a', used)).toBeDefined()
        await sweep(history, nowMs + 151 * dayMs)
        expect(await opened.store.collection('conversation-ages').list('a')).toEqual([])
        expect(await opened.store.collection('items').list('a')).toEqual([])
      })
    })

    describe('quotas of a tenant', () => {
      const MIB = 1024 * 1024
      const text = (bytes: number) => 'x'.repeat(bytes)
      const used = async (from = history) => {
        await from.usage.flush()
        return from.usage.totals('a')
      }
      const conversation = (from: StoredHistory, ...texts: string[]) => {
        const made = { id: newId('conv'), createdAtSec: 1, metadata: {} }
        return from.conversations.create(
          'a',
          made,
          texts.map((one) => ({ item: message(one) })),
        )
      }

      test('beyond the byte quota, storing is rejected until something is deleted', async () => {
        const limited = another({ maxBytesPerTenant: 2 * MIB })
        const first = makeRecord({ in: text(MIB) })
        await limited.checkQuota('a', MIB)
        await limited.responses.finish('a', first)
        await conversation(limited, text(MIB / 2))
        const refusal = { code: 'storage_quota_exceeded', status: 507 }
        await expect((async () => limited.checkQuota('a', MIB))()).rejects.toMatchObject(refusal)
        await expect(conversation(limited, text(MIB))).rejects.toMatchObject({
          ...refusal,
          message: expect.stringMatching(/stores 2 MiB of at most 2 MiB/),
        })
        await limited.checkQuota('b', MIB)
        await limited.responses.delete('a', first.id)
        await limited.checkQuota('a', MIB)
      })

      test('other threads see the bytes after a flush, and a restart keeps them', async () => {
        const limits = { maxBytesPerTenant: MIB }
        const one = another(limits)
        await one.responses.finish('a', makeRecord({ in: text(MIB) }))
        await one.usage.flush()
        await expect(another(limits).checkQuota('a', 1)).rejects.toMatchObject({ status: 507 })
      })

      test('beyond the conversation quota, creation is rejected until one is deleted', async () => {
        const limited = another({ maxConversationsPerTenant: 2 })
        const [first] = [await conversation(limited), await conversation(limited)]
        await expect(conversation(limited)).rejects.toMatchObject({
          code: 'conversation_quota_exceeded',
          status: 429,
          message: expect.stringContaining('has 2 of at most 2 conversations'),
        })
        await limited.conversations.delete('a', (first as Conversation).id)
        expect(await conversation(limited)).toMatchObject({ id: expect.any(String) })
      })

      test('the totals equal a recount after any changes, and are 0 after everything is deleted', async () => {
        const made = (await conversation(history, 'é', '漢字')) as Conversation
        await history.conversations.add('a', made.id, [{ item: message('more') }])
        await history.conversations.changeMetadata('a', made.id, () => ({ key: 'ü' }))
        const page = await history.conversations.page('a', made.id, { order: 'asc', limit: 1 })
        if (page.problem === undefined)
          await history.conversations.removeItem('a', made.id, page.items[0].item.id)
        const lock = await history.conversations.lock('a', made.id)
        const inConversation = makeRecord({ in: 'q', out: 'a' }, { conversationId: made.id })
        await history.responses.finish('a', inConversation, { ...(lock && { lock }) })
        const queued = makeRecord({ in: 'q' }, { status: 'queued' })
        await history.responses.create('a', queued)
        await history.responses.finish('a', { ...queued, status: 'failed' })
        const root = await turn('root')
        await turn('next', root)
        await history.responses.delete('a', root)
        const totals = await used()
        expect(totals).toMatchObject({ bytes: expect.any(Number), conversations: 1 })
        const counted = another()
        await counted.usage.recount('a')
        expect(await used(counted)).toEqual(totals)
        await history.conversations.delete('a', made.id)
        while ((await history.retention.slice(3, Date.now() + 40 * 86_400_000)) > 0);
        expect(await used()).toEqual({ bytes: 0, conversations: 0 })
      })

      test('a recount corrects totals that a crash left wrong', async () => {
        await history.responses.finish('a', makeRecord({ in: text(1_000) }))
        const { bytes } = await used()
        await opened.store.collection('history-usage').put('a', 'total', { bytes: 5 * MIB, conversations: 3 })
        await history.usage.recount('a')
        expect(await used()).toEqual({ bytes, conversations: 0 })
      })
    })
  })
}
