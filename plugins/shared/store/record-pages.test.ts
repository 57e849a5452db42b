import { expect, test } from 'vitest'
import { type Host, SharedStore, Store } from '#kernel'
import { findRecordStore } from './record-pages.ts'

const hostWith = (...provided: readonly object[]): Pick<Host, 'find'> => ({
  find: (token) => (provided.includes(token) ? ({ of: token } as never) : undefined),
})

test('the shared store is preferred, and a plugin without any store does not boot', () => {
  expect(findRecordStore(hostWith(Store, SharedStore))).toEqual({
    store: { of: SharedStore },
    isShared: true,
  })
  expect(findRecordStore(hostWith(Store))).toEqual({ store: { of: Store }, isShared: false })
  expect(() => findRecordStore(hostWith())).toThrow(/needs a store: enable postgres or storage/)
})
