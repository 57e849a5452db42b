/** Errors of the Messages routes. */
import { defineErrors, type GatewayError } from '#kernel'
import { clientError } from '#shared'

export const messagesErrors = defineErrors('messages', {
  invalid_field: clientError((path: string, problem: string) => `${path}: ${problem}`),
  route_not_found: {
    kind: 'not_found',
    source: 'client',
    text: (path: string) => `no route ${path.slice(0, 200)}`,
  },
})

/** @param path of the field, such as `messages.0.content.1.type` */
export function invalidField(path: string, problem: string): GatewayError {
  return messagesErrors.invalid_field.with({ param: path }, path, problem)
}
