/** Errors of the Messages routes. */
import { defineErrors, type GatewayError, shortValue } from '#kernel'
import { clientError } from '#shared'

export const messagesErrors = defineErrors('messages', {
  invalid_field: clientError((path: string, problem: string) => `${path}: ${problem}`),
  route_not_found: {
    kind: 'not_found',
    source: 'client',
    text: (path: string) => `no route ${path.slice(0, 200)}`,
  },
})

/**
 * @param path of the field, such as `messages.0.content.1.type`
 * @param got its wrong value, which is shown in short; default: none
 */
export function invalidField(path: string, problem: string, got?: unknown): GatewayError {
  const shown = shortValue(got)
  return messagesErrors.invalid_field.with(
    { param: path },
    path,
    shown === null ? problem : `${problem} (got ${shown})`,
  )
}
