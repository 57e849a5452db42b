import { expect, test } from 'vitest'
import {
  decodeKvEventBatch,
  encodeKvEventBatch,
  KvCacheLocality,
  type KvEventBatchFields,
} from '../../../../proto/gen/common.ts'
import { KvBatchReader } from './kv-events.ts'

const { KV_CACHE_LOCALITY_LOCAL: LOCAL, KV_CACHE_LOCALITY_REMOTE: REMOTE } = KvCacheLocality

/** Reads batches of one subscription from their wire form. */
function reader() {
  const batches = new KvBatchReader()
  return (fields: KvEventBatchFields) => batches.read(decodeKvEventBatch(encodeKvEventBatch(fields)))
}

const block = { blockHash: 7n, tokenIds: [1, 2], blockSize: 2 }
const stored = (fields: object) => ({ stored: { blocks: [block], ...fields } })
const removed = (fields: object) => ({ removed: { blockHashes: [7n], ...fields } })
const kindsOf = (batch: ReturnType<ReturnType<typeof reader>>) => batch?.events.map(({ kind }) => kind)

test('only local blocks of full-attention layers are reported', () => {
  const read = reader()
  const events = [
    stored({ groupIdx: 0, locality: LOCAL, kvCacheSpecKind: 'full_attention' }),
    stored({}),
    stored({ locality: REMOTE }),
    stored({ groupIdx: 1, kvCacheSpecSlidingWindow: 512 }),
    stored({ groupIdx: 2, kvCacheSpecKind: 'mamba' }),
  ]
  expect(read({ sequenceNumber: 1n, events })).toEqual({
    sequence: 1,
    events: new Array(2).fill({
      kind: 'stored',
      parentHash: null,
      blocks: [{ hash: 7n, tokenIds: Uint32Array.of(1, 2) }],
      blockSize: 2,
    }),
  })
})

test('removals of remote copies or of other layers do not remove the block', () => {
  const read = reader()
  read({
    sequenceNumber: 1n,
    events: [stored({ groupIdx: 0 }), stored({ groupIdx: 1, kvCacheSpecKind: 'sliding_window' })],
  })
  const foreign = [removed({ locality: REMOTE }), removed({ groupIdx: 1 })]
  expect(kindsOf(read({ sequenceNumber: 2n, events: foreign }))).toEqual([])
  const own = [
    removed({ groupIdx: 0 }),
    removed({ locality: LOCAL }),
    removed({ groupIdx: 9 }),
    { cleared: {} },
  ]
  expect(kindsOf(read({ sequenceNumber: 3n, events: own }))).toEqual([
    'removed',
    'removed',
    'removed',
    'cleared',
  ])
})

test('parts of a snapshot are marked, and a batch of loads is ignored', () => {
  const read = reader()
  expect(read({ sequenceNumber: 4n, snapshot: { index: 0, count: 2 } })).toMatchObject({ snapshot: 'first' })
  expect(read({ sequenceNumber: 5n, snapshot: { index: 1, count: 2 } })).toMatchObject({ snapshot: 'next' })
  expect(read({ sequenceNumber: 6n })).toEqual({ sequence: 6, events: [] })
  expect(read({ sequenceNumber: 6n, load: { loadOnly: true } })).toBeNull()
})
