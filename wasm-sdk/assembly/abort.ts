/** What the compiler calls when a module throws: the message goes to the host as the reason why the call failed. */
import { error_set } from './extism'
import { toTextBlock } from './memory'

export function weirAbort(message: string | null, file: string | null, line: u32, column: u32): void {
  const text = message === null ? 'abort' : message
  const place = file === null ? '' : ` (${file}:${line}:${column})`
  error_set(toTextBlock(text + place))
  unreachable()
}
