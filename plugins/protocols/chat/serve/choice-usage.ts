/** Usage of engines that report the first choice, or each choice apart, instead of all. */
import { isObject, type ObservedResponse, parseBoundedJson, type TokenUsage } from '#kernel'

/** What the choices of a response have in common: all answer one prompt, or there are several prompts. */
export type ChoiceScope = 'one_prompt' | 'prompts'

const PROMPT = '"prompt"'

/** Null for engines that report the usage of all choices. */
export function choiceScope({
  reportsPerChoice,
  requestBody,
}: Pick<ObservedResponse, 'reportsPerChoice' | 'requestBody'>): ChoiceScope | null {
  if (!reportsPerChoice) return null
  return promptsOf(requestBody).length > 1 ? 'prompts' : 'one_prompt'
}

/** The prompts of a completions request; empty for any other request, and for one prompt. */
function promptsOf(body: Buffer): readonly unknown[] {
  const prompt = body.includes(PROMPT) ? membersOf(body).prompt : undefined
  // A list of numbers is one prompt.
  return Array.isArray(prompt) && typeof prompt[0] !== 'number' ? prompt : []
}

/**
 * Estimates the usage of all choices of a whole response by their length.
 *
 * @param usage of the first choice
 */
export function usageOfChoices(usage: TokenUsage, response: Buffer, request: Buffer): TokenUsage {
  const { choices } = membersOf(response)
  if (!Array.isArray(choices) || choices.length < 2) return usage
  return {
    ...usage,
    input: scaled(usage.input, promptsOf(request)),
    output: scaled(
      usage.output,
      choices.map((choice) => (isObject(choice) ? (choice.message ?? choice.text) : null)),
    ),
    isEstimated: true,
  }
}

/** @param ofFirst tokens of the first value */
function scaled(ofFirst: number, values: readonly unknown[]): number {
  const lengths = values.map(lengthOf)
  const total = lengths.reduce((sum, length) => sum + length, 0)
  return values.length < 2 ? ofFirst : Math.ceil((ofFirst * total) / lengths[0])
}

/** Characters of a text or message, or tokens of a prompt; at least 1. */
function lengthOf(value: unknown): number {
  if (typeof value === 'string' || Array.isArray(value)) return Math.max(1, value.length)
  return isObject(value) && typeof value.content === 'string'
    ? lengthOf(value.content)
    : JSON.stringify(value ?? null).length
}

function membersOf(body: Buffer): Record<string, unknown> {
  try {
    const value = parseBoundedJson(body)
    return isObject(value) ? value : {}
  } catch {
    return {}
  }
}
