/** What is wrong with a messages request, or with an answer to one. */
import { defineErrors, type GatewayError } from '#kernel'

export const messagesErrors = defineErrors('messages', {
  invalid_field: {
    kind: 'bad_request',
    source: 'client',
    text: (path: string, problem: string) => `${path}: ${problem}`,
  },
  route_not_found: {
    kind: 'not_found',
    source: 'client',
    text: (path: string) => `no route ${path.slice(0, 200)}`,
  },
  generation_aborted: {
    kind: 'bad_gateway',
    source: 'worker',
    text: () => 'the worker gave up before its answer was finished',
  },
})

/** @param path of the field, with dots, as clients of the format know it: `messages.0.content.1.type` */
export function invalidField(path: string, problem: string): GatewayError {
  return messagesErrors.invalid_field.with({ param: path }, path, problem)
}
