/** Data is kept in order while a reader is paused, and the window is returned as data is read. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { StreamInbox } from './stream-inbox.ts'

const WINDOW = 1_000

class Reader {
  readonly inbox = new StreamInbox(WINDOW, this)
  read = ''
  given = 0
  floods = 0
  /** Pauses after this many reads; 0: never. */
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

test('any order of pauses and resumes reads everything once, within the window', () => {
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
          // The sender respects its window.
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
      // Less than half of the window may be held back: more could stall the sender.
      expect((window - reader.given) * 2).toBeLessThan(WINDOW)
    }),
  )
})

test('data beyond the window is reported and not kept', () => {
  const reader = new Reader(0)
  reader.inbox.take(Buffer.alloc(WINDOW), WINDOW)
  expect(reader.floods).toBe(0)
  reader.inbox.take(Buffer.alloc(1), 1)
  expect(reader.floods).toBe(1)
  reader.inbox.release()
  expect(reader.read.length).toBe(WINDOW)
})
