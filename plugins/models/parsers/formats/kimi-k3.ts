/** Channels of `<|open|>` and `<|close|>` tags. */
import { ChannelTagsReader } from '../calls/channel-tags-reader.ts'
import { PREFIX_TEXT, type ToolFormat } from './tool-format.ts'

export const kimiK3: ToolFormat = {
  text: PREFIX_TEXT,
  isMarked: false,
  open: (out) => new ChannelTagsReader(out),
}
