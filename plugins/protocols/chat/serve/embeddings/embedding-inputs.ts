/** What a client wants embedded: a text, texts, token ids, or lists of them. */
import type { EmbeddingInput } from '#kernel'
import { chatErrors } from '../../errors.ts'

/** Inputs of one request: each is a call of its own. */
const MAX_INPUTS = 2_048
const MAX_ID = 0xffff_ffff

/** @throws empty_input, invalid_input (400) */
export function toInputs(input: unknown): EmbeddingInput[] {
  if (typeof input === 'string') return [toText(input)]
  if (!Array.isArray(input)) throw chatErrors.invalid_input('it must be a text or a list')
  if (input.length === 0) throw chatErrors.empty_input()
  if (typeof input[0] === 'number') return [toIds(input)]
  if (input.length > MAX_INPUTS)
    throw chatErrors.invalid_input(`at most ${MAX_INPUTS} inputs are taken at once`)
  return input.map((one: unknown) => (Array.isArray(one) ? toIds(one) : toText(one)))
}

function toText(value: unknown): string {
  if (typeof value !== 'string') throw chatErrors.invalid_input('texts and token ids cannot be mixed')
  if (value === '') throw chatErrors.empty_input()
  return value
}

function toIds(list: readonly unknown[]): Uint32Array {
  if (list.length === 0) throw chatErrors.empty_input()
  for (const id of list)
    if (!Number.isInteger(id) || (id as number) < 0 || (id as number) > MAX_ID)
      throw chatErrors.invalid_input('token ids are whole numbers from 0 on')
  return Uint32Array.from(list as readonly number[])
}
