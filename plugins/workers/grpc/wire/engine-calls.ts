/**
 * What the transport must know of a request beside its bytes: how it is taken back, since an engine that loses its caller
 * may go on for nobody. Kept by the bytes themselves, which are made here and seen by nobody else.
 */
import type { Ask, Runtime } from '../runtimes/runtime.ts'

export interface TakeBack {
  /** Of the method. */
  readonly path: string
  readonly body: Buffer
}

/** What the bytes were made of, for who makes others of it. */
export interface Origin {
  readonly runtime: Runtime
  readonly ask: Ask
}

export class EngineCalls {
  readonly #byBody = new WeakMap<Buffer, { takeBack: TakeBack; origin: Origin | null }>()

  note(body: Buffer, takeBack: TakeBack, origin: Origin | null = null): void {
    this.#byBody.set(body, { takeBack, origin })
  }

  takeBackOf(body: Buffer | null): TakeBack | null {
    return body === null ? null : (this.#byBody.get(body)?.takeBack ?? null)
  }

  originOf(body: Buffer | null): Origin | null {
    return body === null ? null : (this.#byBody.get(body)?.origin ?? null)
  }
}
