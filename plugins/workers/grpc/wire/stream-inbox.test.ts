/** Nothing is lost or read out of order while a reader rests, and the window comes back as it is used. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { StreamInbox } from './stream-inbox.ts'

const WINDOW = 1_000

class Reader {
  readonly inbox = new StreamInbox(WINDOW, this)
  read = ''
  given = 0
  floods = 0
  /** Rests after each so many reads; 0: never. */
  readonly rest: number
  #reads = 0

  constructor(rest: number) {
    this.rest = rest
  }

  readBytes(bytes: Buffer): void {
    this.read += bytes.toString('latin1')
    if (this.rest > 0 && ++this.#reads % this.rest === 0) this.inbox.hold()
  }

  releaseWindow(bytes: number): void {
    this.given += bytes
  }

  onWindowExceeded(): void {
    this.floods++
  }
}

const steps = fc.array(
  fc.oneof(
    fc.constant('let go' as const),
    fc.constant('hold' as const),
    fc.record({ length: fc.nat({ max: 200 }), padding: fc.nat({ max: 50 }) }),
  ),
  { maxLength: 60 },
)

test('any order of holding and letting go reads everything once; no more than the window is ever owed', () => {
  fc.assert(
    fc.property(steps, fc.nat({ max: 3 }), (all, rest) => {
      const reader = new Reader(rest)
      let sent = ''
      let window = 0
      for (const step of all) {
        if (step === 'let go') reader.inbox.release()
        else if (step === 'hold') reader.inbox.hold()
        else {
          const taken = step.length + step.padding
          // The other end keeps to its window.
          if (window - reader.given + taken > WINDOW) continue
          const bytes = Buffer.from(String.fromCharCode(97 + (sent.length % 26)).repeat(step.length))
          window += taken
          sent += bytes.toString('latin1')
          reader.inbox.take(bytes, taken)
        }
        expect(sent.startsWith(reader.read)).toBe(true)
        expect(reader.given).toBeLessThanOrEqual(window)
      }
      expect(reader.floods).toBe(0)
      reader.inbox.release()
      expect(reader.read).toBe(sent)
      // Less than half of the window may be kept back: more could not hold the other end up.
      expect((window - reader.given) * 2).toBeLessThan(WINDOW)
    }),
  )
})

test('who sends more than the window is told, and it is not kept', () => {
  const reader = new Reader(0)
  reader.inbox.take(Buffer.alloc(WINDOW), WINDOW)
  expect(reader.floods).toBe(0)
  reader.inbox.take(Buffer.alloc(1), 1)
  expect(reader.floods).toBe(1)
  reader.inbox.release()
  expect(reader.read.length).toBe(WINDOW)
})
