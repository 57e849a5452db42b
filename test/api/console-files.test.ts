/** The files of the console: their headers, their encodings, and that nothing else of the folder is served. */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { beforeAll, expect, test } from 'vitest'
import { sendRaw } from '../support/raw-socket.ts'
import { openFleet } from './fleet.ts'

beforeAll(() => {
  if (!existsSync('dist/plugins/operations/console/app/index.html'))
    execFileSync(process.execPath, ['plugins/operations/console/build-app.ts'])
})

const open = () => openFleet({ workers: [], plugins: { auth: { apiKey: 'k' }, console: {} } })

test('the page and its files are public, may not be framed, and run no inline code', async () => {
  const { get } = await open()
  const page = await get('/console')
  const html = await page.text()
  expect([page.status, page.headers.get('content-type'), page.headers.get('cache-control')]).toEqual([
    200,
    'text/html; charset=utf-8',
    'no-cache',
  ])
  const policy = page.headers.get('content-security-policy')
  for (const rule of [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'none'",
  ])
    expect(policy?.split('; ')).toContain(rule)
  expect(Object.fromEntries(page.headers)).toMatchObject({
    'x-frame-options': 'DENY',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
  })
  // The policy would block both.
  expect(html).not.toMatch(/<script(?![^>]* src=)|<style| style=| on\w+=/)

  const [, name] = /src="(\/console\/app-\w+\.js)"/.exec(html) ?? []
  for (const encoding of ['gzip, br', 'identity']) {
    const script = await get(name, { 'accept-encoding': encoding })
    expect(await script.text()).not.toBe('')
    expect([script.status, script.headers.get('content-type'), script.headers.get('cache-control')]).toEqual([
      200,
      'text/javascript; charset=utf-8',
      'public, max-age=31536000, immutable',
    ])
    expect(script.headers.get('content-encoding')).toBe(encoding === 'identity' ? null : 'gzip')
    expect(script.headers.get('content-security-policy')).toBe(policy)
  }
})

test('other names are 404 in the admin format, and reach no file outside of the folder', async () => {
  const { gateway, get } = await open()
  for (const name of [
    'main.tsx',
    'index.html.gz',
    '..%2findex.js',
    '%2e%2e%2findex.js',
    '<b>',
    '__proto__',
  ]) {
    const response = await get(`/console/${name}`)
    expect([name, response.status, response.headers.get('content-type')]).toEqual([
      name,
      404,
      'application/json',
    ])
    expect(await response.json()).toMatchObject({ error: { code: 'console_file_not_found' } })
  }
  for (const path of ['/console/../package.json', '/console//etc/passwd', '/console/%0d%0aset-cookie:a=b']) {
    const head = `GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`
    const { text, statuses } = await sendRaw(gateway.port, head, { until: (seen) => seen.includes('}}') })
    expect([path, statuses]).toEqual([path, [404]])
    expect(text.slice(0, text.indexOf('\r\n\r\n'))).not.toMatch(/set-cookie/i)
  }
})
