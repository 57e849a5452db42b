/** Images of answers, between the form of chats (data URLs) and the output item of the Responses format. */
import type { NativeObject } from '#kernel'

const IMAGE_URL = /^data:image\/([\w.+-]{1,64});base64,/

/** @returns null for an image that the URL does not hold */
export function toImageItem(url: string): NativeObject | null {
  const head = IMAGE_URL.exec(url.slice(0, MAX_HEAD))
  if (head === null) return null
  const [{ length }, format] = head
  return {
    type: 'image_generation_call',
    status: 'completed',
    output_format: format,
    result: url.slice(length),
  }
}

/** Longer than the head of any data URL in use. */
const MAX_HEAD = 128

/** @returns a data URL; null for an item without an image */
export function imageOfItem({ type, result, output_format: format }: NativeObject): string | null {
  if (type !== 'image_generation_call' || typeof result !== 'string') return null
  return `data:image/${typeof format === 'string' ? format : 'png'};base64,${result}`
}
