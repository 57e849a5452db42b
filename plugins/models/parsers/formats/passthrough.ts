/** No calls: text is text. */
import { PassthroughReader } from '../calls/passthrough-reader.ts'
import { ALL_TEXT, type ToolFormat } from './tool-format.ts'

export const passthrough: ToolFormat = { text: ALL_TEXT, open: (out) => new PassthroughReader(out) }
