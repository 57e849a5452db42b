/** Topics about stored responses, between the threads of a gateway; with a mesh, control passes them on. */
import { createHash } from 'node:crypto'
import { defineTopic, type Topic } from '#kernel'

/** A response's log has grown. */
export interface LogGrown {
  readonly isOver: boolean
}
export const LiveTopic = defineTopic<LogGrown>('responses-live')
export type LiveResponses = Topic<LogGrown>

/** A response is to stop. */
export interface StopRequest {
  /** It comes from another gateway: the store decides. */
  readonly isHint: boolean
}
export const CancelTopic = defineTopic<StopRequest>('responses-cancel')

/** Waiting jobs, under one key. */
export const JobsTopic = defineTopic<null>('responses-jobs')
export const JOBS_KEY = 'waiting'

/** From data threads to control, under the kind of the signal; the event is the key of a response. */
export const SignalTopic = defineTopic<string>('responses-signals')
export type Signals = Topic<string>

/** Followers repeat their signal within this time, milliseconds. */
export const FOLLOW_AGAIN_MS = 5_000

/** Names a response in topics and signals; it cannot be reversed. @returns 22 characters of base64url */
export function liveKey(tenant: string, id: string): string {
  return createHash('sha256').update(`${tenant}/${id}`).digest().toString('base64url', 0, 16)
}
