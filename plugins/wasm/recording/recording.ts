/** Recording of live exchanges: control requests a number of them, data threads send the inputs of their modules. */
import { defineCommand, defineReplica, type Static, Type } from '#kernel'
import type { PhaseMessage } from '../hooks/phase-message.ts'
import { type RecordedStep, recordedStep } from './recorded-step.ts'

/** Body of POST /wasm/record. */
export const RecordingSchema = Type.Object(
  {
    count: Type.Integer({
      minimum: 1,
      maximum: 100,
      default: 10,
      description: 'Maximum number of exchanges.',
    }),
    seconds: Type.Integer({ minimum: 1, maximum: 25, default: 20, description: 'Maximum time, seconds.' }),
    bodies: Type.Boolean({
      default: false,
      description: 'Includes bodies up to 64 KiB and the events of streams.',
    }),
  },
  { additionalProperties: false },
)

type RecordingOrder = Static<typeof RecordingSchema>

/** Replicated to threads; number 0 if no recording is active. */
interface Recording {
  readonly number: number
  readonly count: number
  readonly bodies: boolean
}

type RecordingResult = { readonly steps: readonly RecordedStep[] } | { readonly refusal: string }

export const RecordExchanges = defineCommand<unknown, RecordingResult>('wasm.record')
export const KeepExchange = defineCommand<{ number: number; step: RecordedStep }, void>('wasm.keep')
const NO_RECORDING: Recording = { number: 0, count: 0, bodies: false }
export const RecordingReplica = defineReplica<Recording>('wasm.recording', NO_RECORDING)

/** Data thread side. */
export class Recorder {
  readonly #send: (kept: { number: number; step: RecordedStep }) => void
  #recording = NO_RECORDING
  #left = 0

  constructor(send: (kept: { number: number; step: RecordedStep }) => void) {
    this.#send = send
  }

  update(recording: Recording): void {
    this.#recording = recording
    this.#left = recording.count
  }

  /** Costs one branch if no recording is active. */
  note(message: PhaseMessage): void {
    if (this.#left === 0) return
    this.#left--
    const { number, bodies } = this.#recording
    this.#send({ number, step: recordedStep(message, bodies) })
  }

  /** Call when a stream begins. @returns the receiver of its step; null if it is not recorded */
  openStream(): ((step: RecordedStep) => void) | null {
    const { number, bodies } = this.#recording
    if (this.#left === 0 || !bodies) return null
    this.#left--
    return (step) => this.#send({ number, step })
  }
}

/** A recording on control. */
interface ActiveRecording extends Pick<Recording, 'number' | 'count'> {
  readonly steps: RecordedStep[]
  end(): void
}

/** Control side: one recording at a time. */
export class Recordings {
  readonly #publish: (recording: Recording) => Promise<void>
  #number = 0
  #active: ActiveRecording | null = null

  constructor(publish: (recording: Recording) => Promise<void>) {
    this.#publish = publish
  }

  async record({ count, seconds, bodies }: RecordingOrder): Promise<RecordingResult> {
    if (this.#active !== null) return { refusal: 'another recording is active; retry later' }
    const { promise: ended, resolve: end } = Promise.withResolvers<void>()
    const number = ++this.#number
    const steps: RecordedStep[] = []
    this.#active = { number, count, steps, end }
    try {
      await this.#publish({ number, count, bodies })
      const timer = setTimeout(end, seconds * 1_000)
      await ended
      clearTimeout(timer)
      await this.#publish(NO_RECORDING)
      return { steps }
    } finally {
      this.#active = null
    }
  }

  keep({ number, step }: { number: number; step: RecordedStep }): void {
    const active = this.#active
    if (active === null || number !== active.number || active.steps.length >= active.count) return
    if (active.steps.push(step) === active.count) active.end()
  }

  end(): void {
    this.#active?.end()
  }
}
