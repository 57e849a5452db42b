/** Folds the hooks of a route into one function per place, once, at ready. No hook: null, and the route pays one branch. */
import type { HookName, HookOptions, HookSignatures, OutgoingAttempt, RouteHooks } from '../contracts/hook.ts'

/** One declared hook. */
export interface DeclaredHook<Name extends HookName = HookName> {
  readonly plugin: string
  readonly name: Name
  readonly hook: HookSignatures[Name]
  readonly options: HookOptions
}

/** The hooks that run on a plugin's routes: its own and those of scope `all`, early ones first, late ones last. */
export function compileHooks(declared: readonly DeclaredHook[], routePlugin: string): RouteHooks {
  const relevant = declared.filter((one) => one.options.scope === 'all' || one.plugin === routePlugin)
  const list = <Name extends HookName>(name: Name): HookSignatures[Name][] =>
    (['early', undefined, 'late'] as const).flatMap((order) =>
      relevant
        .filter((one) => one.name === name && one.options.order === order)
        .map((one) => one.hook as HookSignatures[Name]),
    )
  return {
    onRequest: fold(list('onRequest'), firstReply),
    onPick: fold(list('onPick'), firstSlot),
    onUpstreamRequest: fold(list('onUpstreamRequest'), eachAttempt),
    onResponse: fold(list('onResponse'), eachResponse),
    onChunk: fold(list('onChunk'), bytesToBytes),
    onError: fold(list('onError'), errorToError),
    onDone: fold(list('onDone'), everyObserver),
  }
}

/** Null for none, the hook itself for one, pairs linked from the right for more. */
function fold<Hook>(hooks: readonly Hook[], link: (hook: Hook, rest: Hook) => Hook): Hook | null {
  return hooks.length === 0 ? null : hooks.reduceRight((rest, hook) => link(hook, rest))
}

type OnRequest = HookSignatures['onRequest']
function firstReply(hook: OnRequest, rest: OnRequest): OnRequest {
  return (ctx) => {
    const early = hook(ctx)
    // Only asynchronous hooks cost a promise.
    if (early instanceof Promise) return early.then((reply) => reply || rest(ctx))
    return early || rest(ctx)
  }
}

type OnPick = HookSignatures['onPick']
function firstSlot(hook: OnPick, rest: OnPick): OnPick {
  return (ctx, model) => hook(ctx, model) ?? rest(ctx, model)
}

type OnUpstreamRequest = HookSignatures['onUpstreamRequest']
function eachAttempt(hook: OnUpstreamRequest, rest: OnUpstreamRequest): OnUpstreamRequest {
  return (ctx, attempt: OutgoingAttempt) => {
    const pending = hook(ctx, attempt)
    return pending instanceof Promise ? pending.then(() => rest(ctx, attempt)) : rest(ctx, attempt)
  }
}

type OnResponse = HookSignatures['onResponse']
function eachResponse(hook: OnResponse, rest: OnResponse): OnResponse {
  return (ctx, response) => {
    const pending = hook(ctx, response)
    return pending instanceof Promise ? pending.then(() => rest(ctx, response)) : rest(ctx, response)
  }
}

type OnChunk = HookSignatures['onChunk']
function bytesToBytes(hook: OnChunk, rest: OnChunk): OnChunk {
  return (ctx, chunk) => {
    const changed = hook(ctx, chunk)
    return changed.length === 0 ? changed : rest(ctx, changed)
  }
}

type OnError = HookSignatures['onError']
function errorToError(hook: OnError, rest: OnError): OnError {
  return (ctx, error) => {
    const changed = hook(ctx, error)
    return changed instanceof Promise ? changed.then((next) => rest(ctx, next)) : rest(ctx, changed)
  }
}

type OnDone = HookSignatures['onDone']
function everyObserver(hook: OnDone, rest: OnDone): OnDone {
  return (ctx) => {
    let mine: void | Promise<void>
    let others: void | Promise<void>
    try {
      mine = hook(ctx)
    } finally {
      others = rest(ctx)
    }
    // Nobody waits for them, but what they reject with must reach the log.
    if (mine instanceof Promise && others instanceof Promise)
      return Promise.all([mine, others]).then(() => {})
    return mine instanceof Promise ? mine : others
  }
}
