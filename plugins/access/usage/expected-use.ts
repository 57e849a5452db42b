/** What a request may use at most: its prompt, and the output that it allows. */
import { eachMember } from '#kernel'

/** For the estimate of a prompt. */
const BYTES_PER_TOKEN = 4
/** Output of a request that sets no limit. */
const DEFAULT_OUTPUT = 4_096
/** A larger limit of a client is no expectation. */
const MAX_OUTPUT = 1_000_000
const MAX_ANSWERS = 1_024
/** In the body, or in the `sampling_params` of `/generate`. */
const LIMIT = /^max_(?:completion_|output_|new_)?tokens$/
const ANSWERS = /^(?:n|best_of)$/

export interface ExpectedTokens {
  readonly model: string
  readonly input: number
  readonly output: number
}

/** @param isGenerating false for embeddings and the like, which have no output */
export function expectedTokens(body: Buffer, isGenerating: boolean): ExpectedTokens {
  const found = { model: '', limit: -1, answers: 1 }
  if (isGenerating) readMembers(body, found)
  const output = isGenerating ? (found.limit < 0 ? DEFAULT_OUTPUT : found.limit) * found.answers : 0
  return { model: found.model, input: Math.ceil(body.length / BYTES_PER_TOKEN), output }
}

function readMembers(json: Buffer, found: { model: string; limit: number; answers: number }): void {
  for (const { name, valueStart: start, valueEnd: end } of eachMember(json)) {
    if (name === 'model') found.model = json.toString('utf8', start + 1, end - 1)
    else if (name === 'sampling_params') readMembers(json.subarray(start, end), found)
    else if (LIMIT.test(name)) found.limit = Math.max(found.limit, numberIn(json, start, end, MAX_OUTPUT))
    else if (ANSWERS.test(name))
      found.answers = Math.max(found.answers, numberIn(json, start, end, MAX_ANSWERS))
  }
}

/** -1 for no positive number. */
function numberIn(json: Buffer, start: number, end: number, max: number): number {
  const value = Number(json.toString('latin1', start, end))
  return value > 0 ? Math.min(Math.ceil(value), max) : -1
}
