/** Special tokens and ends of answers, from the files beside a vocabulary. */
import type { SpecialTokens } from '#kernel'
import { readJson, type SourceFiles } from './source-files.ts'
import type { AddedToken } from './token-table.ts'

const USUAL_BOS = ['<s>', '<|begin_of_text|>', '<bos>', '<|endoftext|>', '<|startoftext|>']
const USUAL_EOS = [
  '</s>',
  '<|im_end|>',
  '<|eot_id|>',
  '<|end_of_text|>',
  '<eos>',
  '<|endoftext|>',
  '<|return|>',
]

type Json = Readonly<Record<string, unknown>>

export function readSpecialTokens(
  files: SourceFiles,
  config: Json,
  added: readonly AddedToken[],
): SpecialTokens {
  const map = readJson(files, 'special_tokens_map.json')
  const contents = new Set(added.map(({ content }) => content))
  const named = (key: string, usual: readonly string[]) => {
    if (key in config) return contentOf(config[key])
    return contentOf(map[key]) ?? usual.find((content) => contents.has(content)) ?? null
  }
  return {
    bos: named('bos_token', USUAL_BOS),
    eos: named('eos_token', USUAL_EOS),
    unk: named('unk_token', []),
    pad: named('pad_token', []),
    all: added.filter(({ special }) => special).map(({ content }) => content),
  }
}

/** Ids of the model's configuration, else of the eos token; ascending. */
export function readEosIds(files: SourceFiles, eosId: number | null): number[] {
  const ids = new Set<number>()
  for (const name of ['config.json', 'generation_config.json']) {
    const { eos_token_id: found } = readJson(files, name)
    for (const id of Array.isArray(found) ? found : [found]) if (Number.isInteger(id)) ids.add(Number(id))
  }
  if (eosId !== null) ids.add(eosId)
  return [...ids].sort((a, b) => a - b)
}

/** A token is written as its text, or as an object that has it. */
function contentOf(value: unknown): string | null {
  if (typeof value === 'string') return value
  const { content } = (value ?? {}) as { content?: unknown }
  return typeof content === 'string' ? content : null
}
