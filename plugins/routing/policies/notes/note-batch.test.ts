/** Messages of notes: what is written is read, and damaged messages are rejected. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { NoteBatch, NoteBatchReader } from './note-batch.ts'

type Note = readonly [low: number, high: number, value: number, worker: number]

const word = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 })
const worker = fc.integer({ min: 0, max: 2 ** 48 - 1 })

function write(notes: readonly Note[]): Buffer[] {
  const messages: Buffer[] = []
  const batch = new NoteBatch((message) => messages.push(message))
  for (const note of notes) batch.add(...note)
  batch.flush()
  return messages
}

function read(messages: readonly Buffer[]): Note[] {
  const reader = new NoteBatchReader()
  const notes: Note[] = []
  for (const message of messages) {
    const workers = reader.open(message) ?? []
    reader.read(reader.count, (low, high, value, number) => notes.push([low, high, value, workers[number]]))
  }
  return notes
}

test('all notes are read as they were written', () => {
  const note = fc.tuple(word, word, fc.integer({ min: 0, max: 0xffff }), worker)
  fc.assert(
    fc.property(fc.array(note, { maxLength: 50 }), (notes) => {
      expect(read(write(notes))).toEqual(notes)
    }),
  )
})

test('no message exceeds 64 KiB, whatever the number of workers', () => {
  const notes = Array.from({ length: 20_000 }, (_, i): Note => [i, ~i, i & 0xffff, i % 7_000])
  const messages = write(notes)
  expect(Math.max(...messages.map(({ length }) => length))).toBeLessThanOrEqual(65_536)
  expect(read(messages)).toEqual(notes)
})

test('without notes nothing is sent', () => {
  expect(write([])).toEqual([])
})

test('a message that begins at any address is read', () => {
  const [message] = write([[1, 2, 3, 4]])
  const shifted = Buffer.concat([Buffer.alloc(1), message]).subarray(1)
  expect(read([shifted])).toEqual([[1, 2, 3, 4]])
})

test('random bytes are rejected, or are notes of workers in the message', () => {
  const reader = new NoteBatchReader()
  const [sample] = write([
    [1, 2, 3, 4],
    [5, 6, 7, 8],
  ])
  const change = fc.tuple(fc.nat(sample.length - 1), fc.nat(255))
  fc.assert(
    fc.property(fc.array(change, { maxLength: 4 }), fc.nat(sample.length + 8), (changes, length) => {
      const message = Buffer.alloc(length)
      sample.copy(message)
      for (const [at, byte] of changes) if (at < length) message[at] = byte
      const workers = reader.open(message)
      if (workers === null) return
      let read = 0
      reader.read(1_000, () => read++)
      expect(read).toBe(reader.count)
      expect(reader.count * 12 + workers.length * 8).toBe(length - 12)
    }),
  )
})
