/** Texts of values whose members a tool server or a worker names. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { editItemTexts, editTexts } from './edit-texts.ts'

const hide = (text: string) => text.replaceAll('secret', '***')

test('every text of the output of a tool is edited, whatever its member is named', () => {
  fc.assert(
    fc.property(
      fc.jsonValue({ maxDepth: 4 }),
      fc.constantFrom('data', 'type', 'customer_id', '__proto__'),
      (value, name) => {
        const output = JSON.parse(`{${JSON.stringify(name)}:["secret",${JSON.stringify(value)}]}`)
        expect(JSON.stringify(editTexts(output, hide))).not.toContain('secret')
      },
    ),
  )
})

test('items keep their ids, kinds, opaque data and the bytes of images', () => {
  const kept = {
    type: 'secret_result',
    tool_use_id: 'secret-1',
    encrypted_content: 'secret',
    source: { type: 'base64', media_type: 'image/png', data: 'secret' },
  }
  expect(editItemTexts({ ...kept, customer_id: 'secret', data: 'secret' }, hide)).toEqual({
    ...kept,
    customer_id: '***',
    data: '***',
  })
})

test('an unchanged value is the same object, and an editor may take its time', async () => {
  const value = { text: 'plain', list: [1, null, ''] }
  expect(editTexts(value, hide)).toBe(value)
  expect(await editTexts({ text: 'secret' }, async (text) => hide(text))).toEqual({ text: '***' })
})
