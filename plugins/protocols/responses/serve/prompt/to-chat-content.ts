/** Parts of items as parts of chat messages. */
import type { ContentPart } from '#kernel'

type Part = { readonly type: string; readonly [member: string]: unknown }

const TEXT_MEMBERS: readonly string[] = ['text', 'refusal']

/** Joins the texts of the parts; other parts are ignored. */
export function textOf(parts: readonly { readonly type: string }[]): string {
  const texts: string[] = []
  for (const part of parts as readonly Part[])
    for (const name of TEXT_MEMBERS) if (typeof part[name] === 'string') texts.push(part[name])
  return texts.length === 1 ? texts[0] : texts.join('\n')
}

/** A string if all parts are text. */
export function toChatContent(parts: readonly { readonly type: string }[]): string | readonly ContentPart[] {
  const isText = parts.every(({ type }) => type.endsWith('_text') || type === 'refusal')
  return isText ? textOf(parts) : (parts as readonly Part[]).map(toChatPart)
}

function toChatPart(part: Part): ContentPart {
  switch (part.type) {
    case 'input_image': {
      // A level of detail that chat workers do not know is left to them.
      const detail = part.detail === 'original' ? 'auto' : String(part.detail ?? 'auto')
      return { type: 'image_url', image_url: { url: String(part.image_url), detail } }
    }
    case 'input_file':
      return {
        type: 'file',
        file: {
          file_data: String(part.file_data),
          ...(typeof part.filename === 'string' && { filename: part.filename }),
        },
      }
    case 'input_audio':
      return { type: 'input_audio', input_audio: part.input_audio as { data: string; format: string } }
    case 'input_video':
      return { type: 'video_url', video_url: { url: String(part.video_url) } }
    default:
      return { type: 'text', text: textOf([part]) }
  }
}
