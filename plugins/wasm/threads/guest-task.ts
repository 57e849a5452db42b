/** What crosses between a serving thread and the pool threads that run guests, and what both know of a module. */
import type { AttachPoint, FetchedHead, GuestInput, ModuleNeeds } from '../../../wasm-sdk/abi.ts'
import type { FetchOrder } from '../fetch/fetch-order.ts'
import type { Layout } from '../rewrite/rewrite-module.ts'
import type { ModuleSettings } from '../wire.ts'

/** A registered module as every thread has it. */
export interface LoadedModule {
  readonly uuid: string
  readonly name: string
  /** Its row in the shared statistics. */
  readonly row: number
  /** As it was rewritten. */
  readonly module: WebAssembly.Module
  readonly layout: Layout
  readonly attachPoints: readonly AttachPoint[]
  readonly needs: Required<ModuleNeeds>
  /** `fresh`: each call finds the instance as it was made; `reuse`: warm, one for each tenant; `shared`: one for all. */
  readonly instance: 'fresh' | 'reuse' | 'shared'
  readonly onFailure: 'open' | 'closed'
  /** Of one call. */
  readonly timeoutMs: number
  /** Units of one call, and for each byte of its input. */
  readonly fuel: number
  readonly fuelPerByte: number
  /** Units for what runs when it is instantiated; written into the module. */
  readonly startFuel: number
  /** Units that this burns. */
  readonly burntAtStart: number
  /** `inline`: on the thread that serves the request; `auto`: there as long as its calls burn little. */
  readonly placement: 'pool' | 'inline' | 'auto'
  /** Under which its values and counters are kept: the next module of the name finds them. */
  readonly kvOwner: string
  readonly config: Readonly<Record<string, string>>
  /** What settings it has; null when nobody says. */
  readonly settings: ModuleSettings | null
  readonly usesWasi: boolean
  readonly match: Matcher
  /** Origins that it may fetch from. */
  readonly allowedHosts: readonly string[]
  /** Its OnError and OnResponse also see what the access check refused. */
  readonly seesRefused: boolean
  /** Runs beside the others: what it says is compared and told, never done. Null for modules that take part. */
  readonly shadowOf: string | null
  /** Runs code when it is instantiated: never done ahead of a call, where no deadline watches. */
  readonly hasStart: boolean
}

/** What a request must have to reach the module; members left out say nothing. */
export interface Matcher {
  /** Paths as routes declare them; a star at the end stands for whatever follows. The same for models and values. */
  readonly routes?: readonly string[]
  readonly models?: readonly string[]
  readonly tenants?: readonly string[]
  /** By name in lower case. */
  readonly headers?: Readonly<Record<string, string>>
  /** Part of all requests, 0 to 1, by their id. */
  readonly share?: number
  /** The other part. */
  readonly isInverse?: boolean
}

/** In order of priority, then of registration. */
export interface ModuleSet {
  readonly modules: readonly LoadedModule[]
}

/** Flat list of header changes: [kind, name, value, …]; the value of a removal is empty. */
export type HeaderEdits = readonly string[]
export type EditKind = 'set' | 'add' | 'remove'

export type LogLine = readonly [level: 'debug' | 'info' | 'warn' | 'error', text: string]

/** Why a call failed: the guest trapped or reported an error, gave what is no valid output, or ran out of fuel. */
export type GuestFailure = { readonly kind: 'error' | 'bad_output' | 'fuel'; readonly message: string }

/** How one call went, whatever its phase. */
export interface CallReport {
  /** Null when it went well. */
  readonly failure: GuestFailure | null
  /** Microseconds in the guest, and to put it back. */
  readonly durationUs: number
  /** Units burnt. */
  readonly fuel: number
  readonly logs: readonly LogLine[]
  /** Lines beyond those. */
  readonly droppedLogs: number
  /** What the guest counted: [name, delta, …]. */
  readonly counted: readonly (string | number)[]
}

/** One module's part in the request, response or error phase. */
export interface PhaseResult extends CallReport {
  readonly action: 'continue' | 'modify' | 'reject' | 'fetch'
  /** Null leaves it as it is. */
  readonly status: number | null
  readonly edits: HeaderEdits
  /** Edits of protected headers, and names and values that are none. */
  readonly droppedHeaders: number
  /** Null leaves it as it is. */
  readonly body: Uint8Array | null
  /** What the module waits for; null for other actions. */
  readonly fetch: FetchOrder | null
}

/** What came of a fetch, for the module that asked. */
export interface Fetched {
  readonly uuid: string
  readonly head: FetchedHead
  readonly body: Uint8Array
  readonly state: string
  /** Fetches of the module in this phase so far. */
  readonly count: number
  /** Until when they have time, `performance.now()`. */
  readonly untilMs: number
}

interface TaskBase {
  /** Place of this task in the shared progress cells. */
  readonly cell: number
  /** Modules that the thread has to know for this task, in order. */
  readonly chain: readonly string[]
  /** Given when the thread has said that it misses some. */
  readonly modules: readonly LoadedModule[] | null
  /** With `modules`: those registered now; a thread forgets all others. */
  readonly live: readonly string[] | null
}

/** One phase of one request. */
export interface PhaseItem {
  /** Positions in the task's chain, in order. */
  readonly modules: readonly number[]
  readonly point: Exclude<AttachPoint, 'OnStreamEvent' | 'OnPick'>
  /** Without headers. */
  readonly input: GuestInput
  /** Flat lists; null when no module of the chain needs them. */
  readonly requestHeaders: readonly string[] | null
  readonly responseHeaders: readonly string[] | null
  /** Of the request, or of the answer; null when no module of the chain needs it. */
  readonly body: Uint8Array | null
  /** Null when nobody has waited for a fetch. */
  readonly fetched: Fetched | null
}

/** Phases of some requests. */
export interface PhasesTask extends TaskBase {
  readonly kind: 'phases'
  readonly items: readonly PhaseItem[]
}

/** Events of one stream, with everything that its modules are told about the stream already written. */
export interface StreamItem {
  /** Positions in the task's chain. */
  readonly modules: readonly number[]
  /** Per module: the members `request` and `response` of the head as JSON, without braces. */
  readonly prefixes: readonly string[]
  readonly states: readonly string[]
  readonly requestId: string
  readonly tenant: string | null
  /** Place of the first event in the stream, 0-based. */
  readonly firstIndex: number
  readonly events: readonly StreamEvent[]
  /** After the events the stream has ended. */
  readonly isEnd: boolean
}

export interface StreamEvent {
  readonly name: string | null
  readonly data: string
}

export interface StreamTask extends TaskBase {
  readonly kind: 'stream'
  readonly items: readonly StreamItem[]
}

/** Registration: instantiates the module once, and calls its `describe` when it has one. */
export interface DescribeTask extends TaskBase {
  readonly kind: 'describe'
  readonly hasDescribe: boolean
}

export type GuestTask = PhasesTask | StreamTask | DescribeTask

/** One event on its way out. */
export interface OutEvent {
  /** Place in the item's events of the one that it came from; their number for what the end of the stream brought. */
  readonly source: number
  /** Null when nothing touched the event that it came from. */
  readonly written: StreamEvent | null
}

export interface StreamItemResult {
  readonly out: readonly OutEvent[]
  readonly states: readonly string[]
  /** Position in the task's chain of a module that must not fail and did; -1 when none. */
  readonly failedClosed: number
}

/** Calls of one module in a stream task, added up. */
export interface StreamReport extends CallReport {
  /** Position in the task's chain. */
  readonly module: number
  readonly requestId: string
  readonly isChanged: boolean
}

export type GuestTaskResult =
  /** Modules of the chain that this thread does not know: send them along. */
  | { readonly kind: 'missing' }
  /** Per item, the results of the modules that were called; items at the end may be missing and are sent again. */
  | { readonly kind: 'phases'; readonly items: readonly (readonly PhaseResult[])[] }
  /** Items at the end may be missing here too. */
  | {
      readonly kind: 'stream'
      readonly items: readonly StreamItemResult[]
      readonly reports: readonly StreamReport[]
    }
  | {
      readonly kind: 'describe'
      readonly failure: string | null
      readonly json: string | null
      /** Units that the start has burnt. */
      readonly startFuel: number
    }

/** `workerData` of pool threads. */
export interface GuestThreadData {
  /** Two 32-bit numbers a task: which call runs, 1-based (0: none yet), and since when. */
  readonly cells: SharedArrayBuffer
  readonly state: SharedArrayBuffer
  /** Calls after which a warm instance is replaced. */
  readonly reuseCalls: number
  /** Of the gateway, by name. */
  readonly logLevel: string
}

/** Progress of a task of items: place of the item times this, plus place of the module in the chain, plus 1. */
export const PROGRESS_BASE = 4_096

/** Milliseconds of a clock that all threads share, as a 32-bit number that wraps: only differences mean something. */
export function sharedClockMs(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return (seconds * 1000 + Math.floor(nanoseconds / 1e6)) | 0
}
