/** Names of sampling settings in chat bodies; other formats use the same ones for those that they have. */
import type { Sampling } from '#kernel'

type SettingNames = readonly (readonly [name: keyof Sampling, wireName: string])[]

/** Settings of the internal request that every service takes. */
export const SHARED_SETTINGS: SettingNames = [
  ['temperature', 'temperature'],
  ['topP', 'top_p'],
  ['frequencyPenalty', 'frequency_penalty'],
  ['presencePenalty', 'presence_penalty'],
  ['seed', 'seed'],
  ['logitBias', 'logit_bias'],
  ['stop', 'stop'],
  ['maxTokens', 'max_tokens'],
]
/** Those that engines added to the format. */
export const ENGINE_SETTINGS: SettingNames = [
  ['topK', 'top_k'],
  ['minP', 'min_p'],
  ['repetitionPenalty', 'repetition_penalty'],
  ['minTokens', 'min_tokens'],
  ['stopTokenIds', 'stop_token_ids'],
  ['ignoreEos', 'ignore_eos'],
  ['skipSpecialTokens', 'skip_special_tokens'],
  ['includesStop', 'no_stop_trim'],
]

const NAMES: ReadonlyMap<string, string> = new Map([...SHARED_SETTINGS, ...ENGINE_SETTINGS])

/** Names of the settings that a request has and a format lacks. */
export function namesBeyond(sampling: Sampling, taken: ReadonlySet<string>): readonly string[] {
  return Object.entries(sampling).flatMap(([name, value]) =>
    value === undefined || taken.has(name) ? [] : (NAMES.get(name) ?? name),
  )
}
