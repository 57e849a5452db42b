import fc from 'fast-check'
import { expect, test } from 'vitest'
import { OpenRequests } from './server-parts.ts'

test('equals a Set for any sequence of starts and ends', () => {
  const step = fc.record({ request: fc.nat(7), begins: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const requests = Array.from({ length: 8 }, (_, id) => ({ id, openIndex: -1 }))
      const open = new OpenRequests<(typeof requests)[number]>()
      const wanted = new Set<(typeof requests)[number]>()
      for (const { request, begins } of steps) {
        const holders = [open, wanted]
        for (const holder of holders) {
          if (begins) holder.add(requests[request])
          else holder.delete(requests[request])
        }
        expect(open.size).toBe(wanted.size)
        expect(new Set(open)).toEqual(wanted)
      }
    }),
  )
})

test('a request that ends during the iteration is still visited', () => {
  const [one, other] = [{ openIndex: -1 }, { openIndex: -1 }]
  const open = new OpenRequests<typeof one>()
  open.add(one)
  open.add(other)
  const seen: unknown[] = []
  for (const request of open) {
    seen.push(request)
    open.delete(one)
  }
  expect(seen).toEqual([one, other])
  expect([...open]).toEqual([other])
})
