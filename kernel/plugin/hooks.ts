/** Combines the hooks of a route into one function per hook name, once at boot. Without hooks it is null and costs one branch. */

import type { TextEditor } from '../contracts/generation/text-stream.ts'
import type { HookName, HookOptions, HookSignatures, OutgoingAttempt, RouteHooks } from '../contracts/hook.ts'
import type { RequestContext, RouteDefinition } from '../contracts/request.ts'
import { GatewayError } from '../errors/gateway-error.ts'
import { withEdits } from '../upstream/prompt-texts.ts'
import { withDeadline } from './hook-deadlines.ts'

/** Default of `HookOptions.maxResponseBytes`. */
const DEFAULT_REPLY_BYTES = 1_048_576

/** One declared hook. */
export interface DeclaredHook<Name extends HookName = HookName> {
  readonly plugin: string
  readonly name: Name
  readonly hook: HookSignatures[Name]
  readonly options: HookOptions
  /** Changed by its `HookSwitch`. */
  isOn: boolean
  maxResponseBytes: number
  readsAllHeaders: boolean
}

export function declareHook<Name extends HookName>(
  plugin: string,
  name: Name,
  hook: HookSignatures[Name],
  options: HookOptions,
): DeclaredHook<Name> {
  return {
    plugin,
    name,
    hook: withDeadline(hook, name, plugin, options.timeoutMs),
    options,
    isOn: options.startsOff !== true,
    maxResponseBytes: options.maxResponseBytes ?? DEFAULT_REPLY_BYTES,
    readsAllHeaders: options.readsAllHeaders === true,
  }
}

/** Hooks of a route: those of its plugin and those of scope `all`, early ones first, late ones last. */
export function compileHooks(
  declared: readonly DeclaredHook[],
  routePlugin: string,
  route: RouteDefinition,
): RouteHooks {
  const relevant = declared.filter(
    (one) =>
      one.isOn &&
      (one.options.scope === 'all' || one.plugin === routePlugin) &&
      (one.options.routes?.(route) ?? true),
  )
  const ordered = (['early', undefined, 'late'] as const).flatMap((order) =>
    relevant.filter((one) => one.options.order === order),
  )
  const list = <Name extends HookName>(name: Name): HookSignatures[Name][] =>
    ordered.filter((one) => one.name === name).map((one) => one.hook as HookSignatures[Name])
  return {
    onRequest: fold(list('onRequest'), firstResponse),
    onGeneration: fold(list('onGeneration'), firstAnswer),
    onText: fold(list('onText'), textToText),
    onPromptText: fold(list('onPromptText'), promptToPrompt),
    onAttempt: fold(list('onAttempt'), everyAttempt),
    onEvents: fold(list('onEvents'), eventsToEvents),
    onPick: fold(list('onPick'), firstSlot),
    onUpstreamRequest: fold(list('onUpstreamRequest'), eachAttempt),
    onResponse: fold(list('onResponse'), eachResponse),
    onError: fold(list('onError'), errorToError),
    onDone: fold(list('onDone'), everyObserver),
    maxResponseBytes: Math.max(
      0,
      ...relevant.filter(({ name }) => name === 'onResponse').map((one) => one.maxResponseBytes),
    ),
    readsAllHeaders: relevant.some((one) => one.readsAllHeaders),
    needsGenerations: relevant.some(
      ({ name, options }) => name === 'onText' || options.needsGenerations === true,
    ),
  }
}

/** Null for no hook, the hook itself for one, pairs linked from the right for more. */
function fold<Hook>(hooks: readonly Hook[], link: (hook: Hook, rest: Hook) => Hook): Hook | null {
  return hooks.length === 0 ? null : hooks.reduceRight((rest, hook) => link(hook, rest))
}

// A request may end while a hook runs. The rest of the chain is skipped then, so that it acquires nothing for it.

function isOver(ctx: RequestContext): boolean {
  return ctx.isDone || ctx.isFailing
}

type OnRequest = HookSignatures['onRequest']
function firstResponse(hook: OnRequest, rest: OnRequest): OnRequest {
  return (ctx) => {
    const early = hook(ctx)
    if (early instanceof Promise) return early.then((response) => replyOrRest(response))
    return replyOrRest(early)

    function replyOrRest(response: Awaited<ReturnType<OnRequest>>): ReturnType<OnRequest> {
      return response || isOver(ctx) ? response : rest(ctx)
    }
  }
}

type OnPick = HookSignatures['onPick']
function firstSlot(hook: OnPick, rest: OnPick): OnPick {
  return (ctx, model) => {
    const slot = hook(ctx, model) ?? undefined
    return slot !== undefined || isOver(ctx) ? slot : rest(ctx, model)
  }
}

type OnUpstreamRequest = HookSignatures['onUpstreamRequest']
function eachAttempt(hook: OnUpstreamRequest, rest: OnUpstreamRequest): OnUpstreamRequest {
  return (ctx, attempt: OutgoingAttempt) => {
    const pending = hook(ctx, attempt)
    const goOn = () => (isOver(ctx) ? undefined : rest(ctx, attempt))
    return pending instanceof Promise ? pending.then(goOn) : goOn()
  }
}

type OnGeneration = HookSignatures['onGeneration']
function firstAnswer(hook: OnGeneration, rest: OnGeneration): OnGeneration {
  return (ctx, generation) => {
    const early = hook(ctx, generation)
    if (early instanceof Promise) return early.then((answer) => answerOrRest(answer))
    return answerOrRest(early)

    function answerOrRest(answer: Awaited<ReturnType<OnGeneration>>): ReturnType<OnGeneration> {
      return answer || isOver(ctx) ? answer : rest(ctx, generation)
    }
  }
}

type OnText = HookSignatures['onText']
function textToText(hook: OnText, rest: OnText): OnText {
  return (ctx, stream) => {
    const first = hook(ctx, stream)
    const then = rest(ctx, stream)
    return first && then ? linkEditors(first, then) : first || then
  }
}

function linkEditors(first: TextEditor, then: TextEditor): TextEditor {
  return {
    edit(text, isLast) {
      const passOn = (passed: string) => (passed === '' && !isLast ? '' : then.edit(passed, isLast))
      const passed = first.edit(text, isLast)
      return passed instanceof Promise ? passed.then(passOn) : passOn(passed)
    },
  }
}

type OnPromptText = HookSignatures['onPromptText']
function promptToPrompt(hook: OnPromptText, rest: OnPromptText): OnPromptText {
  return (ctx, texts) => {
    const edited = hook(ctx, texts)
    if (edited instanceof Promise) return edited.then((passed) => editRest(passed))
    return editRest(edited)

    function editRest(passed: Awaited<ReturnType<OnPromptText>>): ReturnType<OnPromptText> {
      if (!passed) return isOver(ctx) ? undefined : rest(ctx, texts)
      const then = isOver(ctx) ? undefined : rest(ctx, withEdits(texts, passed))
      return then instanceof Promise ? then.then((last) => last || passed) : then || passed
    }
  }
}

type OnResponse = HookSignatures['onResponse']
function eachResponse(hook: OnResponse, rest: OnResponse): OnResponse {
  return (ctx, response) => {
    // The response may itself be that of an error. A response that an error replaced meanwhile has no further hooks.
    const isError = ctx.isFailing
    const pending = hook(ctx, response)
    const goOn = () => (ctx.isDone || ctx.isFailing !== isError ? undefined : rest(ctx, response))
    return pending instanceof Promise ? pending.then(goOn) : goOn()
  }
}

type OnEvents = HookSignatures['onEvents']
function eventsToEvents(hook: OnEvents, rest: OnEvents): OnEvents {
  return (ctx, events, isLast) => {
    const changed = hook(ctx, events, isLast)
    const passOn = (next: Buffer) =>
      isOver(ctx) || (next.length === 0 && !isLast) ? next : rest(ctx, next, isLast)
    return changed instanceof Promise ? changed.then(passOn) : passOn(changed)
  }
}

type OnAttempt = HookSignatures['onAttempt']
function everyAttempt(hook: OnAttempt, rest: OnAttempt): OnAttempt {
  return (ctx, attempt) => {
    try {
      hook(ctx, attempt)
    } finally {
      rest(ctx, attempt)
    }
  }
}

type OnError = HookSignatures['onError']
function errorToError(hook: OnError, rest: OnError): OnError {
  return (ctx, error) => {
    const changed = hook(ctx, error)
    if (changed instanceof Promise) return changed.then((next) => passOn(next))
    return passOn(changed)

    // A response in place of the error is final.
    function passOn(next: Awaited<ReturnType<OnError>>): ReturnType<OnError> {
      return next instanceof GatewayError && !ctx.isDone ? rest(ctx, next) : next
    }
  }
}

type OnDone = HookSignatures['onDone']
function everyObserver(hook: OnDone, rest: OnDone): OnDone {
  return (ctx) => {
    const mine = observe(hook, ctx)
    const others = observe(rest, ctx)
    if (mine === undefined || others === undefined) return mine ?? others
    return Promise.allSettled([mine, others]).then(throwFailures)
  }
}

/** Turns an exception into a rejection, so that the other observers run. */
function observe(hook: OnDone, ctx: RequestContext): Promise<void> | undefined {
  try {
    const pending = hook(ctx)
    return pending instanceof Promise ? pending : undefined
  } catch (error) {
    return Promise.reject(error)
  }
}

/** Rejects with every failure, for the log. */
function throwFailures(results: readonly PromiseSettledResult<void>[]): void {
  const reasons = results.flatMap((result) =>
    result.status === 'rejected' ? [result.reason as unknown] : [],
  )
  if (reasons.length === 1) throw reasons[0]
  if (reasons.length > 1) throw new AggregateError(reasons, 'several onDone hooks failed')
}
