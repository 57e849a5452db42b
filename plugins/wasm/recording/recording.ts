/** Recording of live exchanges: control asks for so many, serving threads send what their modules are shown. */
import { defineCommand, defineReplica, Type } from '#kernel'
import type { PhaseMessage } from '../hooks/phase-message.ts'
import { type RecordedStep, recordedStep } from './recorded-step.ts'

/** Of a recording that one asks for. */
export const RecordingSchema = Type.Object(
  {
    count: Type.Integer({ minimum: 1, maximum: 100, default: 10, description: 'Exchanges, at most.' }),
    seconds: Type.Integer({ minimum: 1, maximum: 25, default: 20, description: 'Time, at most.' }),
    bodies: Type.Boolean({
      default: false,
      description: 'With bodies up to 64 KiB, as they came, and with the events of streams.',
    }),
  },
  { additionalProperties: false },
)

export interface RecordingOrder {
  readonly count: number
  readonly seconds: number
  readonly bodies: boolean
}

/** What threads know of it; 0 while none is under way. */
interface Recording {
  readonly number: number
  readonly count: number
  readonly bodies: boolean
}

export type RecordingResult = { readonly steps: readonly RecordedStep[] } | { readonly refusal: string }

export const RecordExchanges = defineCommand<unknown, RecordingResult>('wasm.record')
export const KeepExchange = defineCommand<{ number: number; step: RecordedStep }, void>('wasm.keep')
export const RecordingReplica = defineReplica<Recording>('wasm.recording', {
  number: 0,
  count: 0,
  bodies: false,
})

/** On a serving thread. */
export class Recorder {
  readonly #send: (kept: { number: number; step: RecordedStep }) => void
  #recording: Recording = { number: 0, count: 0, bodies: false }
  #left = 0

  constructor(send: (kept: { number: number; step: RecordedStep }) => void) {
    this.#send = send
  }

  update(recording: Recording): void {
    this.#recording = recording
    this.#left = recording.number === 0 ? 0 : recording.count
  }

  /** A branch while nobody records. */
  note(message: PhaseMessage): void {
    if (this.#left === 0) return
    this.#left--
    const { number, bodies } = this.#recording
    this.#send({ number, step: recordedStep(message, bodies) })
  }

  /** A stream begins. @returns where its step goes; null while nobody wants one */
  openStream(): ((step: RecordedStep) => void) | null {
    const { number, bodies } = this.#recording
    if (this.#left === 0 || !bodies) return null
    this.#left--
    return (step) => this.#send({ number, step })
  }
}

/** On control: one at a time. */
export class Recordings {
  readonly #publish: (recording: Recording) => Promise<void>
  #number = 0
  #steps: RecordedStep[] = []
  #order: RecordingOrder | null = null
  #finish: (() => void) | null = null

  constructor(publish: (recording: Recording) => Promise<void>) {
    this.#publish = publish
  }

  async record(order: RecordingOrder): Promise<RecordingResult> {
    if (this.#order !== null) return { refusal: 'somebody else is recording: try again in a moment' }
    this.#order = order
    this.#number++
    this.#steps = []
    const { count, seconds, bodies } = order
    try {
      const ended = new Promise<void>((resolve) => {
        this.#finish = resolve
      })
      await this.#publish({ number: this.#number, count, bodies })
      const timer = setTimeout(() => this.end(), seconds * 1_000)
      await ended
      clearTimeout(timer)
      await this.#publish({ number: 0, count: 0, bodies: false })
      return { steps: this.#steps }
    } finally {
      this.#order = null
    }
  }

  keep({ number, step }: { number: number; step: RecordedStep }): void {
    if (number !== this.#number || this.#order === null || this.#steps.length >= this.#order.count) return
    this.#steps.push(step)
    if (this.#steps.length === this.#order.count) this.end()
  }

  end(): void {
    this.#finish?.()
    this.#finish = null
  }
}
