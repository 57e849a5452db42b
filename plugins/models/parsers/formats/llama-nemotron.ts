/** An array of calls between `<TOOLCALL>` tags. */
import { jsonFormat } from './tool-format.ts'

export const llamaNemotron = jsonFormat({
  call: { nameKeys: ['name'], argumentKeys: ['arguments', 'parameters'] },
  open: '<TOOLCALL>',
  close: '</TOOLCALL>',
  shape: 'either',
  bare: 'no',
  isOnce: false,
})
