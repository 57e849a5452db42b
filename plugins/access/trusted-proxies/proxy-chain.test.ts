import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readNetworks } from '#shared'
import { ProxyChain } from './proxy-chain.ts'

const XFF = 'x-forwarded-for'
const chain = () => new ProxyChain(XFF, readNetworks(['10.0.0.0/8', '::1', 'fd00::/8']))
const named = (...lines: string[]) => lines.flatMap((line) => [XFF, line])

describe('the client address', () => {
  test.each<[string, string, string[], string]>([
    ['an untrusted peer is ignored', '203.0.113.9', ['198.51.100.1'], '203.0.113.9'],
    ['a trusted proxy is used', '10.0.0.1', ['198.51.100.1'], '198.51.100.1'],
    ['a proxy without the header', '10.0.0.1', [], '10.0.0.1'],
    ['only the last untrusted address counts', '10.0.0.1', ['1.1.1.1, 198.51.100.1'], '198.51.100.1'],
    ['proxies before each other', '10.0.0.1', ['198.51.100.1, 10.0.0.3,10.0.0.2'], '198.51.100.1'],
    ['each in a line of its own', '10.0.0.1', ['1.1.1.1', '198.51.100.1', '10.0.0.2'], '198.51.100.1'],
    ['proxies alone: the first of them', '10.0.0.1', ['10.0.0.3, 10.0.0.2'], '10.0.0.3'],
    ['with a port', '10.0.0.1', ['198.51.100.1:4711'], '198.51.100.1'],
    ['version 6', '::1', ['2001:DB8::7'], '2001:db8::7'],
    ['version 6 with a port', '10.0.0.1', ['[2001:db8::7]:4711, [fd00::1]'], '2001:db8::7'],
    ['version 6 in full', '10.0.0.1', ['2001:0db8:0000:0000:0000:0000:0000:0007'], '2001:db8::7'],
    ['version 4 as version 6', '10.0.0.1', ['::ffff:198.51.100.1, ::ffff:10.0.0.2'], '198.51.100.1'],
    ['hidden', '10.0.0.1', ['198.51.100.1, unknown, 10.0.0.2'], '10.0.0.2'],
    ['nothing', '10.0.0.1', [''], '10.0.0.1'],
    ['torn', '10.0.0.1', ['198.51.100.1,'], '10.0.0.1'],
    ['no address', '10.0.0.1', ['198.51.100.1 evil'], '10.0.0.1'],
  ])('%s', (_, peer, lines, expected) => {
    expect(chain().addressOf(peer, ['host', 'a', ...named(...lines), 'accept', '*/*'])).toBe(expected)
  })

  test('the number of followed proxies is limited', () => {
    const mine = Array.from({ length: 10_000 }, (_, i) => `10.1.${i >> 8}.${i & 255}`)
    expect(chain().addressOf('10.0.0.1', named(mine.join(',')))).toBe(mine[mine.length - 32])
  })

  test('other proxies are trusted after a reload', () => {
    const changing = chain()
    expect(changing.addressOf('10.0.0.1', named('198.51.100.1'))).toBe('198.51.100.1')
    changing.use(readNetworks(['192.0.2.1']))
    expect(changing.addressOf('10.0.0.1', named('198.51.100.1'))).toBe('10.0.0.1')
    expect(changing.addressOf('192.0.2.1', named('198.51.100.1'))).toBe('198.51.100.1')
  })

  test('whatever a client prepends, the result is the address seen by the first trusted proxy', () => {
    const stranger = fc.ipV4().filter((ip) => !ip.startsWith('10.'))
    const own = fc.ipV4().map((ip) => `10.${ip.split('.').slice(1).join('.')}`)
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.string(), stranger, own, fc.ipV6()), { maxLength: 20 }),
        stranger,
        fc.array(own, { maxLength: 5 }),
        fc.array(fc.boolean(), { minLength: 30, maxLength: 30 }),
        (forged, client, proxies, splits) => {
          const entries = [...forged.map((text) => text.replaceAll(/[\r\n]/g, '')), client, ...proxies]
          const lines: string[] = []
          entries.forEach((entry, i) => {
            if (i === 0 || splits[i]) lines.push(entry)
            else lines[lines.length - 1] += `, ${entry}`
          })
          expect(chain().addressOf('10.0.0.1', named(...lines))).toBe(client)
        },
      ),
    )
  })
})
