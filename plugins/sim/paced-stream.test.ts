import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { StreamWriter } from '#kernel'
import { ResponseFlow } from '../../kernel/http/response-flow.ts'
import { type Fault, NO_FAULT } from './faults.ts'
import type { StreamEvent } from './generation.ts'
import { DRIPPED_BYTES, PacedStream } from './paced-stream.ts'

/** A client whose socket takes a given number of writes before it is full. */
class RecordingWriter implements StreamWriter {
  readonly written: string[] = []
  room = Number.POSITIVE_INFINITY
  isEnded = false
  readonly flow = new ResponseFlow()

  write(event: string | Buffer): boolean {
    this.written.push(String(event))
    this.room -= 1
    if (this.room === 0) this.flow.hold()
    return this.room > 0
  }

  drain(room: number): void {
    this.room = room
    this.flow.release()
  }

  end(lastEvent?: string | Buffer): void {
    if (lastEvent !== undefined) this.written.push(String(lastEvent))
    this.isEnded = true
  }
}

const words: StreamEvent[] = ['a', 'b', 'c', 'd'].map((data, tick) => ({ tick, tokens: 1, data }))
const events = [...words, { tick: 3, tokens: 0, data: 'end' }]

function open(pace: { ttftMs: number; itlMs: number }, fault: Partial<Fault> = {}, source = events) {
  const writer = new RecordingWriter()
  const listener = { onTokens: vi.fn(), onEnd: vi.fn(), onDrop: vi.fn() }
  const stream = new PacedStream(
    writer,
    writer.flow,
    source.values(),
    pace,
    { ...NO_FAULT, ...fault },
    listener,
  )
  return { writer, listener, stream }
}

beforeEach(() => vi.useFakeTimers())
afterEach(() => vi.useRealTimers())

describe('the pace', () => {
  test('the first token waits for ttft, each further one for itl', () => {
    const { writer } = open({ ttftMs: 20, itlMs: 5 })
    vi.advanceTimersByTime(19)
    expect(writer.written).toEqual([])
    vi.advanceTimersByTime(1)
    expect(writer.written).toEqual(['a'])
    vi.advanceTimersByTime(10)
    expect(writer.written).toEqual(['a', 'b', 'c'])
    vi.advanceTimersByTime(5)
    expect(writer.written).toEqual(['a', 'b', 'c', 'd', 'end'])
    expect(writer.isEnded).toBe(true)
  })

  test('without delays everything leaves at once, outside the turn that began it', () => {
    const { writer, listener } = open({ ttftMs: 0, itlMs: 0 })
    expect(writer.written).toEqual([])
    vi.runAllTimers()
    expect(writer.written).toEqual(['a', 'b', 'c', 'd', 'end'])
    expect(listener.onTokens).toHaveBeenCalledTimes(4)
    expect(listener.onEnd).toHaveBeenCalledOnce()
  })

  test('a slow client is waited for', () => {
    const { writer } = open({ ttftMs: 0, itlMs: 0 }, {}, [...events])
    writer.room = 2
    vi.runAllTimers()
    expect(writer.written).toEqual(['a', 'b'])
    writer.drain(10)
    vi.runAllTimers()
    expect(writer.written).toEqual(['a', 'b', 'c', 'd', 'end'])
  })

  test('after stop nothing more is made or written', () => {
    const { writer, stream, listener } = open({ ttftMs: 20, itlMs: 5 })
    vi.advanceTimersByTime(25)
    stream.stop()
    vi.runAllTimers()
    expect(writer.written).toEqual(['a', 'b'])
    expect(listener.onTokens).toHaveBeenCalledTimes(2)
    expect(listener.onEnd).not.toHaveBeenCalled()
  })
})

describe('faults of a stream', () => {
  const atOnce = { ttftMs: 0, itlMs: 0 }

  test('hang-after falls silent and stays open', () => {
    const { writer, listener } = open(atOnce, { hangAfter: 3 })
    vi.runAllTimers()
    expect(writer.written).toEqual(['a', 'b', 'c'])
    expect(writer.isEnded).toBe(false)
    expect(listener.onDrop).not.toHaveBeenCalled()
  })

  test('drop-after closes the connection after that many events', () => {
    const { writer, listener } = open(atOnce, { dropAfter: 3 })
    vi.runAllTimers()
    expect(writer.written).toEqual(['a', 'b', 'c'])
    expect(writer.isEnded).toBe(false)
    expect(listener.onDrop).toHaveBeenCalledOnce()
  })

  test('malformed breaks the second event and goes on', () => {
    const { writer } = open(atOnce, { isMalformed: true })
    vi.runAllTimers()
    expect(writer.written).toHaveLength(5)
    expect(() => JSON.parse(writer.written[1].slice('data: '.length))).toThrow()
  })

  test('drip sends single bytes that many milliseconds apart, then whole events, and loses nothing', () => {
    const long = Array.from({ length: 20 }, (_, tick) => ({ tick, tokens: 1, data: `event ${tick}.` }))
    const { writer, listener } = open(atOnce, { dripMs: 200 }, long)
    vi.advanceTimersByTime(450)
    expect(writer.written).toEqual(['e', 'v', 'e'])
    vi.runAllTimers()
    expect(writer.written.slice(0, 10).every((part) => part.length === 1)).toBe(true)
    expect(writer.written.filter((part) => part.length === 1)).toHaveLength(DRIPPED_BYTES)
    expect(writer.written.join('')).toBe(long.map((event) => event.data).join(''))
    expect(listener.onEnd).toHaveBeenCalledOnce()
  })

  test('a client that leaves during a drip is not written to', () => {
    const { writer, stream } = open(atOnce, { dripMs: 200 })
    vi.advanceTimersByTime(1)
    stream.stop()
    vi.runAllTimers()
    expect(writer.written).toHaveLength(1)
  })
})
