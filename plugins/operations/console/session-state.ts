/** What all threads know of the sessions: the secret of their cookies, and the sessions that ended before their time. */
import { randomBytes } from 'node:crypto'
import { defineReplica } from '#kernel'
import { SECRET_BYTES, type Session } from './session-cookie.ts'

/** More sessions that were signed out before their time end all sessions, which bounds the memory. */
const MAX_ENDED = 1_000

export interface SessionState {
  /** Null before control has made it. In memory only: sessions end with the gateway. */
  readonly secret: Uint8Array | null
  /** Ids of sessions. */
  readonly ended: ReadonlySet<string>
}

export const SessionReplica = defineReplica<SessionState>('console.sessions', {
  secret: null,
  ended: new Set(),
})

/** Makes and changes the state; on control. */
export class SessionKeeper {
  #secret = randomBytes(SECRET_BYTES)
  /** End of each session by id, milliseconds since 1970. */
  readonly #ended = new Map<string, number>()

  get state(): SessionState {
    return { secret: this.#secret, ended: new Set(this.#ended.keys()) }
  }

  end({ id, expiresAtMs }: Pick<Session, 'id' | 'expiresAtMs'>): void {
    const nowMs = Date.now()
    for (const [other, endMs] of this.#ended) if (endMs <= nowMs) this.#ended.delete(other)
    if (this.#ended.size >= MAX_ENDED) {
      this.#secret = randomBytes(SECRET_BYTES)
      this.#ended.clear()
    }
    this.#ended.set(id, expiresAtMs)
  }
}
