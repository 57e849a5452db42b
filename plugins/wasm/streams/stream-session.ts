/** The OnStreamEvent attach point: passes the events of one stream through its modules. */
import { writeEvent } from '#shared'
import { wasmErrors } from '../errors.ts'
import { withHeaders } from '../hooks/phase-head.ts'
import type { StreamEvent, StreamItemResult } from '../threads/guest-task.ts'
import type { RequestModules } from './request-modules.ts'
import { DONE, type EventBlock, readBlocks } from './sse-events.ts'
import type { StreamBatcher } from './stream-batcher.ts'

const NOTHING = Buffer.alloc(0)

type ShownBlock = EventBlock & { readonly event: StreamEvent }

const isShown = (block: EventBlock): block is ShownBlock => block.event !== null
const isDoneBlock = ({ isDone }: EventBlock) => isDone

/** Receives the events of a stream and returns the changed ones. */
export type StreamEventSink = Pick<StreamSession, 'take'>

export class StreamSession {
  readonly #batcher: StreamBatcher
  readonly #of: RequestModules
  readonly #prefixes: readonly string[]
  #states: string[]
  #nextIndex = 0
  /** The modules were called for the end of the stream. */
  #hasEnded = false
  /** A module ended the stream: further events are dropped. */
  #isClosed = false

  /** @param responseHeaders flat list; empty if no module needs them */
  constructor(batcher: StreamBatcher, of: RequestModules, responseHeaders: readonly string[]) {
    this.#batcher = batcher
    this.#of = of
    this.#states = of.modules.map(() => '')
    // Encoded once, since it is the same for every event.
    const start = `{"status":${of.ctx.status},"is_stream":true`
    this.#prefixes = of.modules.map(({ needs }, index) => {
      const response = withHeaders(start, responseHeaders, needs.response_headers)
      return `"request":${of.requests[index]},"response":${response}`
    })
  }

  /** @param events complete events @throws wasm_module_failed if a fail-closed module failed */
  take(events: Buffer, isLast: boolean): Buffer | Promise<Buffer> {
    if (this.#isClosed) return NOTHING
    if (this.#hasEnded || this.#of.modules.length === 0) return events
    const blocks = readBlocks(events)
    const done = blocks.findIndex(isDoneBlock)
    const isEnd = isLast || done >= 0
    // Nothing after [DONE] is shown to modules.
    const shown = (done < 0 ? blocks : blocks.slice(0, done)).filter(isShown)
    if (shown.length === 0 && !isEnd) return events
    this.#hasEnded = isEnd
    return this.#transform(events, blocks, shown, done, isEnd)
  }

  #transform(
    events: Buffer,
    blocks: readonly EventBlock[],
    shown: readonly ShownBlock[],
    done: number,
    isEnd: boolean,
  ): Buffer | Promise<Buffer> {
    const { modules, ctx, tenant } = this.#of
    const work = {
      modules,
      states: this.#states,
      prefixes: this.#prefixes,
      requestId: ctx.requestId,
      tenant,
      firstIndex: this.#nextIndex,
      events: shown.map(({ event }) => event),
      isEnd,
      origin: ctx,
    }
    this.#nextIndex += shown.length
    const finish = (given: StreamItemResult['out'] | null): Buffer => {
      if (given === null) throw wasmErrors.wasm_module_failed()
      const end = given.findIndex(({ written }) => written?.data === DONE)
      if (end >= 0) this.#isClosed = this.#hasEnded = true
      const out = end < 0 ? given : given.slice(0, end + 1)
      if (end >= 0) return assembleToEnd(blocks, shown, done, out)
      this.#states = work.states
      const isUntouched = out.length === shown.length && out.every(({ written }) => written === null)
      return isUntouched ? events : assemble(blocks, shown, done, out)
    }
    const out = this.#batcher.run(work)
    return out instanceof Promise ? out.then(finish) : finish(out)
  }
}

/** For a stream that a module ended: drops everything after its last event. */
function assembleToEnd(
  blocks: readonly EventBlock[],
  shown: readonly EventBlock[],
  done: number,
  out: StreamItemResult['out'],
): Buffer {
  const { source } = out[out.length - 1]
  const stop = source < shown.length ? blocks.indexOf(shown[source]) + 1 : done < 0 ? blocks.length : done
  return assemble(blocks.slice(0, stop), shown.slice(0, source + 1), -1, out)
}

/** Keeps the position of other blocks; events for the end of the stream come before [DONE]. */
function assemble(
  blocks: readonly EventBlock[],
  shown: readonly EventBlock[],
  done: number,
  out: StreamItemResult['out'],
): Buffer {
  const parts: Buffer[] = []
  // In the order of their sources.
  let writtenCount = 0
  const write = (source: number, block: EventBlock | null) => {
    let otherFields = block?.otherFields ?? ''
    for (; writtenCount < out.length && out[writtenCount].source === source; writtenCount++) {
      const { written } = out[writtenCount]
      if (written === null) parts.push(block?.bytes ?? NOTHING)
      else parts.push(Buffer.from(writeEvent(written, otherFields)))
      otherFields = ''
    }
  }
  let next = 0
  for (let place = 0; place < blocks.length; place++) {
    const block = blocks[place]
    if (place === done) write(shown.length, null)
    if (next < shown.length && block === shown[next]) write(next++, block)
    else parts.push(block.bytes)
  }
  if (done < 0) write(shown.length, null)
  return parts.length === 1 ? parts[0] : Buffer.concat(parts)
}
