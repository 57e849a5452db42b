/** The OnPromptText attach point: before a request goes to a model, modules may change its texts or refuse it. */
import type { PromptText, RequestContext } from '#kernel'
import { wasmErrors } from '../errors.ts'
import { type Chain, selectModules } from './active-modules.ts'
import { applyEdits } from './header-edits.ts'
import type { PhaseChain, PhaseEnd } from './phase-chain.ts'
import { messageOf } from './phase-message.ts'
import { toReplacedTexts } from './prompt-texts.ts'

const REFUSED = 'The prompt was refused.'

/**
 * @returns one text for each; undefined leaves all as they are
 * @throws prompt_refused with the module's status, payload_too_large (413) if the texts are too large to be shown,
 *   wasm_module_failed (500)
 */
export function runOnPromptText(
  phases: PhaseChain,
  chain: Chain,
  ctx: RequestContext,
  texts: readonly PromptText[],
  maxBodyBytes: number,
): readonly string[] | undefined | Promise<readonly string[] | undefined> {
  const modules = selectModules(chain, ctx)
  if (modules.length === 0) return undefined
  const body = Buffer.from(JSON.stringify(texts))
  if (body.length > maxBodyBytes) throw wasmErrors.payload_too_large(maxBodyBytes)
  const message = messageOf(ctx, chain, {
    point: 'OnPromptText',
    prompt: { texts: texts.length, is_question: phases.isAsking(ctx) },
    body,
  })
  const end = phases.run(modules, message)
  return end instanceof Promise ? end.then((ended) => toTexts(ended, texts)) : toTexts(end, texts)
}

function toTexts({ rejection, body }: PhaseEnd, given: readonly PromptText[]): readonly string[] | undefined {
  if (rejection !== null) {
    const { status, edits } = rejection
    const reason = Buffer.from(rejection.body).toString('utf8')
    throw wasmErrors.prompt_refused.with({ status, headers: applyEdits([], edits) }, reason || REFUSED)
  }
  return body === null ? undefined : toReplacedTexts(body).map((text, index) => text ?? given[index].text)
}
