/** The rule about streams that chat and text completions share. */
import { ruleErrors } from '../errors.ts'

interface Streamed {
  readonly stream?: boolean | null
  readonly stream_options?: object | null
}

/** @throws stream_options_requires_stream (400). */
export function checkStreamOptions({ stream, stream_options }: Streamed): void {
  if (stream_options != null && stream !== true) {
    throw ruleErrors.stream_options_requires_stream.with({ param: 'stream_options' })
  }
}
