/** The session of the browser: who is signed in, and what the gateway offers. */
import { call } from './api.ts'
import { connectionLost, refusals, setProbe } from './connection.ts'
import { Store, useStore } from './store.ts'

export interface Principal {
  readonly owner: string
  readonly role: 'admin' | 'user' | null
}

/** Response of GET /console/session. */
export interface SessionInfo {
  /** False for a gateway without credentials. */
  readonly is_required: boolean
  readonly principal: Principal | null
  readonly expires_at: string | null
  /** Null without a session. */
  readonly version: string | null
  readonly gateway: string | null
  /** Enabled plugins; empty without a session. */
  readonly features: readonly string[]
}

/** Null until the gateway has responded. */
export const session = new Store<SessionInfo | null>(null)
/** Why the sign-in page is shown; null at the first visit. */
export const endReason = new Store<string | null>(null)

export function startSession(): void {
  setProbe(refresh)
  refusals.follow(leaveIfEnded)
  refresh().catch(connectionLost)
}

async function refresh(): Promise<void> {
  const before = session.value
  const now = await call<SessionInfo>('GET', '/console/session')
  if (before?.principal && now.is_required && now.principal === null)
    endReason.set('The session has ended. Sign in again.')
  session.set(now)
}

/** @throws ApiError, 401 for a wrong key */
export async function signIn(key: string): Promise<void> {
  await call('POST', '/console/session', undefined, key)
  endReason.set(null)
  await refresh()
}

export async function signOut(): Promise<void> {
  await call('DELETE', '/console/session')
  // Also discards what pages have in memory, such as an API key.
  location.reload()
}

/** After a refused request: the session may have expired, or its key may be revoked. */
export function leaveIfEnded(): void {
  if (session.value === null || session.value.principal === null) return
  refresh().catch(connectionLost)
}

export function useSession(): SessionInfo {
  return useStore(session) as SessionInfo
}

/** Whether the operator may change something; the gateway checks each request. */
export function useMayWrite(): boolean {
  return useSession().principal?.role !== 'user'
}
