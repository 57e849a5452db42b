/** Messages between data threads and pool threads, and the form of a loaded module. */
import type { AttachPoint, FetchedHead, GuestInput, ModuleNeeds } from '../../../wasm-sdk/abi.ts'
import type { FetchOrder } from '../fetch/fetch-order.ts'
import type { Layout } from '../rewrite/rewrite-module.ts'
import type { ModuleDescriptor, ModuleSettings } from '../wire.ts'

/** A registered module on every thread. */
export interface LoadedModule {
  readonly uuid: string
  readonly name: string
  /** Its row in the shared statistics. */
  readonly row: number
  /** The rewritten module. */
  readonly module: WebAssembly.Module
  readonly layout: Layout
  readonly attachPoints: readonly AttachPoint[]
  readonly needs: Required<ModuleNeeds>
  /** `fresh`: restored for each call; `reuse`: warm, one per tenant; `shared`: warm, one for all. */
  readonly instance: 'fresh' | 'reuse' | 'shared'
  readonly onFailure: 'open' | 'closed'
  /** Limit of one call. */
  readonly timeoutMs: number
  /** Fuel of one call, and per byte of its input, units. */
  readonly fuel: number
  readonly fuelPerByte: number
  /** Fuel of the start, units; part of the rewritten module. */
  readonly startFuel: number
  /** Fuel that the start used at registration, units. */
  readonly burntAtStart: number
  /** `inline`: on the data thread; `auto`: inline while calls use little fuel. */
  readonly placement: 'pool' | 'inline' | 'auto'
  readonly config: Readonly<Record<string, string>>
  /** Declared settings; null if none are declared. */
  readonly settings: ModuleSettings | null
  readonly usesWasi: boolean
  readonly match: Matcher
  /** Origins that the module may fetch from. */
  readonly allowedHosts: readonly string[]
  /** OnError and OnResponse are also called for requests rejected by the access check. */
  readonly seesRefused: boolean
  /** Runs code during instantiation. */
  readonly hasStart: boolean
  /** Table of the values that the store or the mesh keeps; null if they are kept in memory only. */
  readonly stored: SharedArrayBuffer | null
}

/** Conditions of a request to reach the module; absent members match everything. Names of headers are in lower case. */
export type Matcher = NonNullable<ModuleDescriptor['match']> & {
  /** Selects the complement of the share. */
  readonly isInverse?: boolean
}

/** By priority, then by registration. */
export interface ModuleSet {
  readonly modules: readonly LoadedModule[]
  /** Name of a shared module with on_failure closed that is not loaded; null if there is none. */
  readonly missing: string | null
}

/** Flat list of header edits: [kind, name, value, …]; the value of a removal is empty. */
export type HeaderEdits = readonly string[]
export type EditKind = 'set' | 'add' | 'remove'

export type LogLine = readonly [level: 'debug' | 'info' | 'warn' | 'error', text: string]

/** Why a call failed: a trap or reported error, an invalid output, or too little fuel. */
export type GuestFailure = { readonly kind: 'error' | 'bad_output' | 'fuel'; readonly message: string }

/** Result of one call in any phase. */
export interface CallReport {
  /** Null if the call succeeded. */
  readonly failure: GuestFailure | null
  /** Time in the guest, including the restore, microseconds. */
  readonly durationUs: number
  /** Fuel used, units. */
  readonly fuel: number
  readonly logs: readonly LogLine[]
  /** Number of lines beyond the limit. */
  readonly droppedLogs: number
  /** Counts of the guest: [series, delta, …]. */
  readonly counted: readonly (string | number)[]
  /** Observations of the guest: [series, value, …]. */
  readonly observed: readonly (string | number)[]
  /** Gauges of the guest: [series, value, …]. */
  readonly gauged: readonly (string | number)[]
}

/** Result of a module in a request, response, error or tool phase. */
export interface PhaseResult extends CallReport {
  readonly action: 'continue' | 'modify' | 'reject' | 'fetch'
  /** Null keeps the status. */
  readonly status: number | null
  readonly edits: HeaderEdits
  /** Number of dropped edits: protected headers, invalid names and values. */
  readonly droppedHeaders: number
  /** Null keeps the body. */
  readonly body: Uint8Array | null
  /** Requested fetch; null for other actions. */
  readonly fetch: FetchOrder | null
}

/** Result of a fetch for the module that requested it. */
export interface Fetched {
  readonly uuid: string
  readonly head: FetchedHead
  readonly body: Uint8Array
  readonly state: string
  /** Number of fetches of the module in this phase. */
  readonly count: number
  /** Deadline of all fetches, `performance.now()`. */
  readonly untilMs: number
}

interface TaskBase {
  /** Index of this task in the progress cells. */
  readonly cell: number
  /** Uuids of the modules of the task, in order. */
  readonly chain: readonly string[]
  /** Set after the thread replied that modules are missing. */
  readonly modules: readonly LoadedModule[] | null
  /** With `modules`: registered modules; the thread removes all others. */
  readonly live: readonly string[] | null
}

/** One phase of one request. */
export interface PhaseItem {
  /** Indices in the task's chain, in order. */
  readonly modules: readonly number[]
  readonly point: Exclude<AttachPoint, 'OnStreamEvent' | 'OnText' | 'OnPick'>
  /** Without headers. */
  readonly input: GuestInput
  /** Flat lists; null if no module needs them. */
  readonly requestHeaders: readonly string[] | null
  readonly responseHeaders: readonly string[] | null
  /** Body of the request or response; null if no module needs it. */
  readonly body: Uint8Array | null
  /** Null if no module waited for a fetch. */
  readonly fetched: Fetched | null
}

export interface PhasesTask extends TaskBase {
  readonly kind: 'phases'
  readonly items: readonly PhaseItem[]
}

/** Events of one stream, with the constant part of the heads. */
export interface StreamItem {
  /** Indices in the task's chain. */
  readonly modules: readonly number[]
  /** `OnText`: one piece of a text; its only event is the new text, and `states` are the held-back texts. */
  readonly point: 'OnStreamEvent' | 'OnText'
  /** Constant part of each module's head as JSON. */
  readonly prefixes: readonly string[]
  readonly states: readonly string[]
  readonly requestId: string
  readonly tenant: string | null
  /** Index of the first event in the stream, 0-based. */
  readonly firstIndex: number
  readonly events: readonly StreamEvent[]
  /** The stream ends after the events. */
  readonly isEnd: boolean
  /** Where the run continues after a fetch of a module; null for a new run. */
  readonly resume: StreamResume | null
  /** Maximum number of fetches of a module for one event or piece of text. */
  readonly maxFetches: number
}

/** Progress of a run. */
export interface StreamProgress {
  /** A stack of events between two modules: the results of an event pass the whole chain before the next event. */
  readonly pending: readonly PendingEvent[]
  /** Number of events taken so far. */
  readonly taken: number
  /** Number of modules that were called for the end of the stream. */
  readonly ended: number
  /** Bytes that the modules may still write. */
  readonly room: number
}

/** An event in the chain. */
export interface PendingEvent {
  /** Index of the incoming event that it results from. */
  readonly source: number
  readonly event: StreamEvent
  readonly isWritten: boolean
  /** Index of the next module. */
  readonly place: number
}

/** A run that waits for a fetch of the module of its next call, which it repeats then. */
export interface StreamPause extends StreamProgress {
  readonly order: FetchOrder
  /** The call had the result of a fetch already. */
  readonly isRepeated: boolean
}

export interface StreamResume extends StreamProgress {
  /** For the next call; null if its module is not called any more. */
  readonly fetched: Fetched | null
}

export interface StreamEvent {
  readonly name: string | null
  readonly data: string
}

export interface StreamTask extends TaskBase {
  readonly kind: 'stream'
  readonly items: readonly StreamItem[]
}

/** At registration: instantiates the module and calls `describe` if it is exported. */
interface DescribeTask extends TaskBase {
  readonly kind: 'describe'
  readonly hasDescribe: boolean
}

export type GuestTask = PhasesTask | StreamTask | DescribeTask

/** An outgoing event. */
export interface OutEvent {
  /** Index of the incoming event that it results from; the number of events for the end of the stream. */
  readonly source: number
  /** Null if the incoming event is unchanged. */
  readonly written: StreamEvent | null
}

export interface StreamItemResult {
  readonly out: readonly OutEvent[]
  readonly states: readonly string[]
  /** Index in the task's chain of a fail-closed module that failed; -1 if none. */
  readonly failedClosed: number
  /** Null for a run that is complete. */
  readonly pause: StreamPause | null
}

/** A call of one module in a stream task. */
export interface StreamReport extends CallReport {
  /** Index in the task's chain. */
  readonly module: number
  readonly requestId: string
  /** Of a successful call. */
  readonly action: 'continue' | 'modify' | 'fetch'
}

export type GuestTaskResult =
  /** The thread does not have all modules of the chain: send them with the task. */
  | { readonly kind: 'missing' }
  /** Results of the called modules by item; missing items at the end are sent again. */
  | { readonly kind: 'phases'; readonly items: readonly (readonly PhaseResult[])[] }
  /** Missing items at the end are sent again. */
  | {
      readonly kind: 'stream'
      readonly items: readonly StreamItemResult[]
      readonly reports: readonly StreamReport[]
    }
  | ({ readonly kind: 'describe' } & StartedModule)

/** Result of the trial start of a module. */
export interface StartedModule {
  /** Why the start or `describe` failed; null if both succeeded. */
  readonly failure: string | null
  /** Output of `describe`; null if there is none. */
  readonly json: string | null
  /** Fuel used by the start, units. */
  readonly startFuel: number
}

/** `workerData` of pool threads. */
export interface GuestThreadData {
  /** Two 32-bit numbers per task: progress (0: no call yet), and start of the call. */
  readonly cells: SharedArrayBuffer
  readonly state: SharedArrayBuffer
  /** Calls after which a warm instance is replaced. */
  readonly reuseCalls: number
  /** Log level of the gateway. */
  readonly logLevel: string
}

/** Progress is the index of the item times this, plus the index of the module in the chain, plus 1. */
export const PROGRESS_BASE = 4_096

/** Clock shared by all threads, milliseconds, as a 32-bit number that wraps. */
export function sharedClockMs(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return (seconds * 1000 + Math.floor(nanoseconds / 1e6)) | 0
}
