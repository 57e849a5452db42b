/** The published schemas of Open Responses, and the plain templates of its compliance suite. */
import { createRequire } from 'node:module'
import { expect } from 'vitest'
import { defineValidator, type TSchema } from '#kernel'
import type { checkResponseEvents } from '../../support/response-events.ts'
import type { Json, ResponseJson } from './responses-fleet.ts'

const shapes = createRequire(import.meta.url)('../../fixtures/open-responses-shapes.json') as {
  components: { schemas: Record<string, Json> }
}
const validators = new Map(
  Object.keys(shapes.components.schemas).map((name) => [
    name,
    defineValidator({ ...shapes, $ref: `#/components/schemas/${name}` } as unknown as TSchema),
  ]),
)

export function expectShape(name: string, value: unknown): void {
  const validator = validators.get(name)
  if (validator === undefined) throw new Error(`no shape ${name}`)
  // A copy, as validation fills in defaults.
  expect([name, validator.problem(structuredClone(value))]).toEqual([name, null])
}

/** Schemas by event type. */
const eventShapes = new Map(
  Object.keys(shapes.components.schemas)
    .filter((name) => name.endsWith('StreamingEvent'))
    .map((name) => {
      const { type } = (shapes.components.schemas[name] as ResponseJson).properties
      return [type.enum?.[0] ?? type.const, name]
    }),
)

const PNG =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
export const message = (role: string, content: unknown, more: object = {}) => ({
  type: 'message',
  role,
  content,
  ...more,
})

export const templates: readonly [string, Json][] = [
  ['basic-response', { input: [message('user', 'Say hello in exactly 3 words.')] }],
  [
    'assistant-phase',
    {
      input: [
        message('assistant', 'let me see', { phase: 'commentary' }),
        message('assistant', 'it is four', { phase: 'final_answer' }),
        message('user', 'and now?'),
      ],
    },
  ],
  ['system-prompt', { input: [message('system', 'You are a pirate.'), message('user', 'Say hello.')] }],
  [
    'image-input',
    {
      input: [
        message('user', [
          { type: 'input_text', text: 'What is this?' },
          { type: 'input_image', image_url: PNG },
        ]),
      ],
    },
  ],
  [
    'multi-turn',
    {
      input: [message('user', 'I am Ada.'), message('assistant', 'Hello Ada.'), message('user', 'Who am I?')],
    },
  ],
]

/** Checks the order of a stream, and the schema of every event and of the last response. */
export function expectEvents(checked: ReturnType<typeof checkResponseEvents>): ResponseJson {
  for (const event of checked.events) {
    const shape = eventShapes.get(event.type)
    if (shape === undefined) throw new Error(`no shape for ${event.type}`)
    expectShape(shape, event)
  }
  expectShape('ResponseResource', checked.response)
  return checked.response
}
