/** No calls: text is text. @source parsers facts 1.1 */
import { PassthroughReader } from '../calls/passthrough-reader.ts'
import { ALL_TEXT, type ToolFormat } from './tool-format.ts'

export const passthrough: ToolFormat = { text: ALL_TEXT, open: (out) => new PassthroughReader(out) }
