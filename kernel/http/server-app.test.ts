import { expect, test } from 'vitest'
import { load } from './server-app.ts'

test('a missing binary is reported with platform, Node version and advice, and keeps its cause', () => {
  const cause = new Error(
    "This version supports many.\n\nError: Cannot find module '@uwsjs/none'\nRequire stack: …",
  )
  const open = () => {
    throw cause
  }
  expect(() => load(open)).toThrow(
    expect.objectContaining({
      name: 'BootError',
      cause,
      message: expect.stringMatching(
        /binary for \w+-\w+ and Node v22\.\S+ cannot be loaded \(Cannot find module '@uwsjs\/none'\): run npm install/,
      ),
    }),
  )
})
