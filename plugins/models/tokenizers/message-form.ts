/** Finds by trials which form of messages a chat template expects, and which conversations it refuses. */
import { type MessageForm, toTemplateMessages } from './chat-values.ts'
import { fromJson, type Value } from './jinja/values.ts'
import { RenderLimitExceeded } from './render-budget.ts'

/** Renders a trial. @throws Error if the template refuses it */
export type RenderTrial = (variables: Readonly<Record<string, Value>>) => string

/** What the trials of a template found. */
export interface TemplateReport {
  readonly form: MessageForm
  /** Kinds of conversations that the template refuses, with its reason. */
  readonly refused: readonly { readonly conversation: string; readonly reason: string }[]
}

/** Words that occur in no template. */
const PROBE = 'weir-probe-text'
const OTHER = 'weir-probe-other'
const ROLE = 'weir-probe-role'
const MAX_REASON = 300

const USER = { role: 'user', content: PROBE }
const ASSISTANT = { role: 'assistant', content: 'Yes.' }
const TOOL = {
  type: 'function',
  function: {
    name: 'probe',
    description: 'Probes.',
    parameters: {
      type: 'object',
      properties: { city: { type: 'string', description: 'A city.' } },
      required: ['city'],
    },
  },
}
const CALLS = {
  tool_calls: [
    { id: 'abcdefghi', type: 'function', function: { name: 'probe', arguments: `{"city": "${OTHER}"}` } },
  ],
}
const RESULT = { role: 'tool', tool_call_id: 'abcdefghi', content: '18' }

interface Conversation {
  readonly messages: readonly object[]
  readonly tools?: readonly object[]
  readonly documents?: readonly object[]
}

/** The kinds of conversations that the report mentions. */
const CONVERSATIONS: Readonly<Record<string, Conversation>> = {
  'one user message': { messages: [USER] },
  'system message': { messages: [{ role: 'system', content: 'Brief.' }, USER] },
  'system message in the middle': {
    messages: [USER, ASSISTANT, { role: 'system', content: 'Brief.' }, USER],
  },
  'several turns': { messages: [USER, ASSISTANT, USER] },
  'two user messages in a row': { messages: [USER, USER] },
  'assistant message first': { messages: [ASSISTANT, USER] },
  tools: { messages: [USER], tools: [TOOL] },
  'tool call and its result': {
    messages: [USER, { role: 'assistant', content: null, ...CALLS }, RESULT],
    tools: [TOOL],
  },
  documents: { messages: [USER], documents: [{ title: 'A', text: 'Text.' }] },
  'names of participants': { messages: [{ ...USER, name: 'ann' }] },
}

/** Whether the template refuses every kind of conversation. */
export const refusesAll = ({ refused }: TemplateReport): boolean =>
  refused.length === Object.keys(CONVERSATIONS).length

/** @throws RenderLimitExceeded */
export function examineTemplate(render: RenderTrial): TemplateReport {
  const form = findForm(render)
  const refused: { conversation: string; reason: string }[] = []
  for (const [conversation, trial] of Object.entries(CONVERSATIONS)) {
    const { error } = attempt(render, trial, form)
    if (error !== null) refused.push({ conversation, reason: error.slice(0, MAX_REASON) })
  }
  return { form, refused }
}

function findForm(render: RenderTrial): MessageForm {
  const plain: MessageForm = {
    content: 'string',
    emptyContent: 'empty',
    toolArguments: 'value',
    developer: 'system',
  }
  const base: MessageForm = { ...plain, content: takesParts(render, plain) ? 'parts' : 'string' }
  const shows = (form: MessageForm) => {
    const { text } = attempt(render, CONVERSATIONS['tool call and its result'], form)
    return text?.includes(OTHER) === true
  }
  const forms = (['empty', 'null'] as const).flatMap((emptyContent) =>
    (['value', 'text'] as const).map((toolArguments) => ({ ...base, emptyContent, toolArguments })),
  )
  const found = forms.find(shows) ?? base
  return { ...found, developer: knowsDeveloper(render, found) ? 'developer' : 'system' }
}

/** Both parts of a message must be in the prompt, and not as a printed list. */
function takesParts(render: RenderTrial, form: MessageForm): boolean {
  const content = [PROBE, OTHER].map((text) => ({ type: 'text', text }))
  const { text } = attempt(render, { messages: [{ role: 'user', content }] }, { ...form, content: 'parts' })
  return (
    text !== null &&
    [PROBE, OTHER].every((word) => text.includes(word)) &&
    !/["']type["']\s*:\s*["']text/.test(text)
  )
}

/** A template that knows the role does not treat it as any other. */
function knowsDeveloper(render: RenderTrial, found: MessageForm): boolean {
  const form: MessageForm = { ...found, developer: 'developer' }
  const textFor = (role: string) => attempt(render, { messages: [{ role, content: OTHER }, USER] }, form).text
  const text = textFor('developer')
  return text?.includes(OTHER) === true && text !== textFor(ROLE)?.replaceAll(ROLE, 'developer')
}

function attempt(
  render: RenderTrial,
  { messages, tools, documents }: Conversation,
  form: MessageForm,
): { readonly text: string | null; readonly error: string | null } {
  try {
    const text = render({
      messages: toTemplateMessages(messages, form),
      tools: fromJson(tools ?? null),
      documents: fromJson(documents ?? null),
      add_generation_prompt: true,
    })
    return { text, error: null }
  } catch (error) {
    if (error instanceof RenderLimitExceeded) throw error
    return { text: null, error: (error as Error).message }
  }
}
