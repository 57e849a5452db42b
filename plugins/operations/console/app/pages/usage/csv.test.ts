/** Files for spreadsheets: quoting, and names that would be formulas. */
import { expect, test } from 'vitest'
import { toCsv } from './csv.ts'

const amounts = {
  requests: 1,
  input_tokens: 20,
  cached_tokens: 5,
  output_tokens: 30,
  reasoning_tokens: 0,
  cost: 0.25,
}

test('a report has a line per group, quoted where needed, and no name is a formula', () => {
  const names = ['auth:team-a', 'a,"b"', '=HYPERLINK("http://x")', '+1', null]
  const report = {
    from: '2026-11-01',
    to: '2026-11-29',
    total: amounts,
    data: names.map((tenant) => ({ tenant, ...amounts })),
  }
  expect(toCsv(report, ['tenant']).split('\r\n')).toEqual([
    'tenant,requests,input_tokens,cached_tokens,output_tokens,reasoning_tokens,cost',
    'auth:team-a,1,20,5,30,0,0.25',
    '"a,""b""",1,20,5,30,0,0.25',
    `"'=HYPERLINK(""http://x"")",1,20,5,30,0,0.25`,
    "'+1,1,20,5,30,0,0.25",
    ',1,20,5,30,0,0.25',
    '',
  ])
})
