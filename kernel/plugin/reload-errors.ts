/** Why a configuration cannot be taken on while the gateway runs. */
import { defineErrors } from '../errors/define-errors.ts'

export const reloadErrors = defineErrors('reload', {
  reload_unavailable: {
    kind: 'conflict',
    source: 'gateway',
    text: () => 'this gateway was started without a way to read its configuration again',
  },
  invalid_configuration: {
    kind: 'bad_request',
    source: 'client',
    text: (problems: string) => `the configuration was not applied: ${problems}`,
  },
})
