/** What a name may resolve to. */
import { expect, test } from 'vitest'
import { pinnedLookup } from './pinned-lookup.ts'
import { ANYWHERE } from './reach-rules.ts'

const PUBLIC = { address: '8.8.8.8', family: 4 }
const PUBLIC_V6 = { address: '2606:4700::1111', family: 6 }
const PRIVATE = { address: '10.0.0.1', family: 4 }

function lookup(
  found: readonly { address: string; family: number }[],
  options: object,
  allowsPrivate = false,
) {
  const rules = { ...ANYWHERE, allowsPrivate }
  return new Promise((resolve, reject) => {
    pinnedLookup(rules, (_, done) => done(null, found))('host', options, (error, address, family) =>
      error ? reject(error) : resolve(family === undefined ? address : [address, family]),
    )
  })
}

test('the address that was checked is the one that is given', async () => {
  expect(await lookup([PUBLIC, PUBLIC_V6], { all: true })).toEqual([PUBLIC, PUBLIC_V6])
  expect(await lookup([PUBLIC, PUBLIC_V6], { family: 6 })).toEqual([PUBLIC_V6.address, 6])
  expect(await lookup([PRIVATE], {}, true)).toEqual([PRIVATE.address, 4])
})

test('one private address among them is enough to refuse the name', async () => {
  await expect(lookup([PUBLIC, PRIVATE], { all: true })).rejects.toThrow('private')
  await expect(lookup([PUBLIC_V6, PRIVATE], { family: 6 })).rejects.toThrow('private')
  await expect(lookup([], { all: true })).rejects.toThrow('no address')
})
